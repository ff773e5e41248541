"""Embeddings of tokens for single layers."""

from collections.abc import Iterable
from typing import Annotated

from specs.base.base import Fault, OmitDefault, RuleContext, Spec, Width
from specs.base.roles import Role
from specs.kinds.activation import Activation
from specs.kinds.norm import Norm


class PerLayerEmbedding(Spec):
    """A branch that gates a narrow embedding of the tokens: x + norm(output(activation(gate(x)) * e)) (Gemma 3n, 2025).

    With a table of this layer, and norm and projection of the embedded tokens x0 that the first layer reads, e is
    `(sqrt(width) * table(tokens) + norm(projection(x0) / sqrt(d_model))) / sqrt(2)`.
    """

    width: Annotated[Width, Role.WIDTH]
    """Width of the embedding (Gemma 3n: 256)."""
    vocab_size: Annotated[Width | None, OmitDefault()] = None
    """Number of rows of the table; tokens beyond it read row 0 (Gemma 3n: 262144). Default: that of the model."""
    activation: Activation
    """Activation of the gate."""
    norm: Norm
    """Norm of the projected tokens, with weights shared by all layers, and, with weights of its own, of the output."""

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        """The violated rules of the norm and the stack."""
        yield from (fault.under("norm") for fault in self.norm.faults(context))
        if not context.token_decoder:
            yield Fault(
                (),
                "belongs to architecture: decoder, whose layers can read its tokens",
                "an embedding per layer",
                "Remove it.",
            )
