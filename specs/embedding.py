"""Token embeddings and what is added to them."""

from typing import Annotated, Literal

from pydantic import Field

from specs.base import PositiveFloat, Probability, Spec, Width
from specs.norm import Norm


class Embedding(Spec):
    """From token ids to the residual stream: token * scale + token type + position, then norm, then projection.

    ``width`` is the width of the tables where it differs from d_model (ALBERT, ELECTRA): a projection
    follows.  ``scale`` multiplies the token vectors.  ``token_types`` counts segment embeddings (BERT: 2).
    """

    token_types: Annotated[int, Field(ge=0, le=2**16)] = 0
    width: Width | None = None
    scale: PositiveFloat | Literal["sqrt_d_model"] | None = None
    norm: Norm | None = None
    dropout: Probability = 0.0
