"""NeoBERT after its paper (Le Breton et al., 2025), with the names of the published checkpoint: it is not in transformers."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput, MaskedLMOutput, SequenceClassifierOutput


class NeoBERTConfig(PreTrainedConfig):
    """The fields of the published class."""

    model_type = "neobert"
    hidden_size: int = 768
    num_hidden_layers: int = 28
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    dropout: float = 0.0
    embedding_init_range: float = 0.02
    decoder_init_range: float = 0.02
    rms_norm: bool = True
    rope: bool = True
    norm_eps: float = 1e-6
    hidden_act: str = "SwiGLU"
    vocab_size: int = 30522
    pad_token_id: int | None = 0
    max_length: int = 1024
    flash_attention: bool = True
    base_scale: float = 960.0**-0.5
    ngpt: bool = False


def rotated(x: Tensor) -> Tensor:
    """Neighbours in a head as complex numbers, turned by their position: B T H W."""
    length, width = x.shape[1], x.shape[-1]
    rates = 10000.0 ** -(torch.arange(0, width, 2, dtype=x.dtype) / width)
    angles = torch.arange(length, dtype=x.dtype)[:, None] * rates  # T W/2
    turns = torch.polar(torch.ones_like(angles), angles)[None, :, None]
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * turns).flatten(-2)


class FFN(nn.Module):
    """A gated feed-forward with both of its first matrices in one."""

    def __init__(self, d_model: int, hidden: int) -> None:
        super().__init__()
        self.w12 = nn.Linear(d_model, 2 * hidden, bias=False)
        self.w3 = nn.Linear(hidden, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.w12(x).chunk(2, -1)
        return self.w3(F.silu(gate) * up)


class Block(nn.Module):
    """One layer; queries, keys and values of a head are stored side by side."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        width = config.hidden_size
        self.heads = config.num_attention_heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.wo = nn.Linear(width, width, bias=False)
        self.ffn = FFN(width, -(-int(2 * config.intermediate_size / 3) // 8) * 8)
        self.attention_norm = nn.RMSNorm(width, config.norm_eps)
        self.ffn_norm = nn.RMSNorm(width, config.norm_eps)

    def forward(self, x: Tensor, seen: Tensor | None) -> Tensor:
        q, k, v = self.qkv(self.attention_norm(x)).unflatten(-1, (self.heads, -1)).chunk(3, -1)
        q, k, v = (each.transpose(1, 2) for each in (rotated(q), rotated(k), v))
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        x = x + self.wo(mixed.transpose(1, 2).flatten(2))
        return x + self.ffn(self.ffn_norm(x))


class Base(PreTrainedModel):
    """The base of the classes."""

    config_class = NeoBERTConfig


class NeoBERT(Base):
    """The body."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.encoder = nn.Embedding(config.vocab_size, config.hidden_size)
        self.transformer_encoder = nn.ModuleList(Block(config) for _ in range(config.num_hidden_layers))
        self.layer_norm = nn.RMSNorm(config.hidden_size, config.norm_eps)
        self.post_init()

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> BaseModelOutput:
        seen = None if attention_mask is None else attention_mask.bool()[:, None, None]
        x = self.encoder(input_ids)
        for block in self.transformer_encoder:
            x = block(x, seen)
        return BaseModelOutput(last_hidden_state=self.layer_norm(x))


class NeoBERTLMHead(Base):
    """Scores of every token."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.model = NeoBERT(config)
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size)
        self.post_init()

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> MaskedLMOutput:
        hidden = self.model(input_ids, attention_mask).last_hidden_state
        return MaskedLMOutput(logits=self.decoder(hidden))


class NeoBERTForSequenceClassification(Base):
    """Scores of classes, from the first token."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.model = NeoBERT(config)
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> SequenceClassifierOutput:
        first = self.model(input_ids, attention_mask).last_hidden_state[:, 0]
        return SequenceClassifierOutput(logits=self.classifier(torch.tanh(self.dense(first))))
