"""The embedding of tokens beside the hidden states of another model (DeepSeek-V3: DeepSeek-AI, 2024, equation 21).

Shapes: batch B, tokens T, width D.
"""

from __future__ import annotations

import torch
from torch import Tensor

import specs.kinds.next_token as spec
from zoo import functional
from zoo.components.embedding import Embedding
from zoo.components.linear import EmbeddingTable, Linear
from zoo.context import StackContext
from zoo.core.precision import wide
from zoo.core.sharding import VOCABULARY, Sharding
from zoo.registry import build_component, builds


@builds(spec.NextToken)
class NextToken(Embedding):
    """projection([norm(token), hidden_norm(hidden state)])."""

    token: EmbeddingTable

    def __init__(self, spec: spec.NextToken, context: StackContext) -> None:
        super().__init__(spec, context)
        assert context.vocab_size is not None
        self.token = EmbeddingTable(context.vocab_size, context.d_model)
        self.norm = build_component(spec.norm, context)
        self.hidden_norm = build_component(spec.hidden_norm, context)
        self.projection = Linear(2 * context.d_model, context.d_model, bias=False)

    def sharding(self) -> Sharding:
        """By the vocabulary."""
        return Sharding({"token": VOCABULARY}, {"vocab_size": self.token.num_embeddings})

    def mask_and_positions(self, inputs: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        mask = torch.ones_like(inputs) if mask is None else mask
        return mask, functional.token_positions(mask, inputs.shape[1])

    def forward(self, input_ids: Tensor, positions: Tensor, hidden_states: Tensor) -> Tensor:
        """input_ids and positions: B T, hidden_states: B T D, each of the token before -> B T D."""
        both = self.norm(wide(self.token(input_ids))), self.hidden_norm(wide(hidden_states))
        return self.position.embed(self.projection(torch.cat(both, -1)), positions)
