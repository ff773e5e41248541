"""An encoder, such as BERT."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import specs.model as spec
from zoo import functional
from zoo.components.embedding import Embedding
from zoo.components.pooling import TokenSequence
from zoo.context import BuildContext
from zoo.models.outputs import Outputs
from zoo.models.stack import Stack
from zoo.registry import build_component


class Encoder(nn.Module):
    """head(encoder(embedding(tokens))); every token attends to every other."""

    def __init__(self, spec: spec.Model) -> None:
        super().__init__()
        assert spec.encoder is not None
        context = BuildContext.of(spec, "encoder")
        position = spec.position_of(spec.encoder)
        self.embedding = Embedding(spec, position, context)
        self.encoder = Stack(spec.encoder, position, context)
        self.head = build_component(spec.head, context.with_token(self.embedding.token))

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Outputs:
        """input_ids, attention_mask (1 for real tokens; default: all) and token_type_ids (default: 0): B T."""
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        positions = functional.token_positions(mask, input_ids.shape[1])  # B T
        x = self.embedding(input_ids, positions, token_type_ids)  # B T D
        x, _ = self.encoder(x, positions, mask)
        return Outputs(self.head(x, TokenSequence(input_ids, mask)))
