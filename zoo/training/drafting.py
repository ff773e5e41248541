"""Training of a module of multi-token prediction together with a model to draft for (DeepSeek-V3: DeepSeek-AI, 2024, section 2.2).

The model is made of the module's own spec, with plain tokens as inputs. Both share the token table and the head, and learn the sum of
their losses, as DeepSeek-V3 does with a module for one further token. Shapes: batch B, tokens T, width D, vocabulary V.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from specs.model.model import Model
from zoo.builder import assemble
from zoo.models.decoder import Decoder
from zoo.models.next_token_decoder import NextTokenDecoder
from zoo.training.passage import Sample
from zoo.weights.materialize import materialize
from zoo.weights.random import RandomWeights

DRAFT_WEIGHT = 0.3
"""The factor of the module's loss in DeepSeek-V3's first 10 trillion tokens."""


class Drafted(nn.Module):
    """A decoder, and a module that predicts the token after the next one from the decoder's hidden states."""

    def __init__(self, spec: Model, seed: int) -> None:
        super().__init__()
        self.draft: NextTokenDecoder = initialized(spec, seed)
        self.main: Decoder = initialized(without_hidden_states(spec), seed)
        self.main.embedding.token.weight = self.draft.embedding.token.weight
        self.main.head = self.draft.head

    def both(self, batch: Sample) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """The scores and targets of the decoder, B T V and B T, and of the module, for T - 1 tokens."""
        (ids,) = batch.inputs
        tokens = self.main.positions(ids, None, None, None)
        x = self.main.embedding(ids, tokens.positions, None)
        x, present = self.main.decoder(x, replace(tokens, ids=ids), None)  # B T D
        scores = self.main.scored(x, present, tokens, ids, last_only=False).logits
        drafted = self.draft(ids[:, 1:], hidden_states=x[:, :-1]).logits
        return (scores, batch.targets), (drafted, batch.targets[:, 1:])


def without_hidden_states(spec: Model) -> Model:
    """The spec of a module with plain tokens as inputs."""
    data: dict[str, Any] = spec.model_dump(exclude={"expect"})
    data["decoder"]["embedding"], data["embedding"] = None, {"kind": "tokens"}
    return Model.model_validate(data)


def initialized(spec: Model, seed: int) -> Any:
    """The model of a spec with weights by its recipe."""
    model = assemble(spec)
    materialize(model, RandomWeights(model, spec, seed))
    return model
