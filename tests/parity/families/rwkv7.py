"""RWKV-7 after its paper (Peng et al., 2025), token by token, with the names of flash-linear-attention: it is not in transformers."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput, CausalLMOutput


class RWKV7Config(PreTrainedConfig):
    """The fields of the published class."""

    model_type = "rwkv7"
    attn_mode: str = "chunk"
    hidden_size: int = 2048
    hidden_ratio: float | None = 4.0
    intermediate_size: int | None = None
    num_hidden_layers: int = 24
    head_dim: int | None = 64
    num_heads: int | None = None
    decay_low_rank_dim: int = 64
    gate_low_rank_dim: int = 128
    a_low_rank_dim: int = 64
    v_low_rank_dim: int = 16
    hidden_act: str = "sqrelu"
    max_position_embeddings: int = 2048
    norm_first: bool = True
    norm_bias: bool = True
    norm_eps: float = 1e-5
    attn: dict[str, Any] | None = None
    use_cache: bool = True
    initializer_range: float = 0.02
    fuse_norm: bool = True
    fuse_cross_entropy: bool = True
    fuse_linear_cross_entropy: bool = False
    use_l2warp: bool = True
    vocab_size: int = 32000
    value_dim: list[int] | None = None
    tie_word_embeddings: bool = False


class LoRA(nn.Module):
    """A projection by way of a narrow vector."""

    def __init__(self, width: int, rank: int, activation: nn.Module, *, bias: bool = True) -> None:
        super().__init__()
        down, up = nn.Linear(width, rank, bias=False), nn.Linear(rank, width, bias=bias)
        self.lora = nn.Sequential(down, activation, up)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.lora(x)
        return result


class Attention(nn.Module):
    """Time mixing of one row."""

    def __init__(self, config: Any, layer: int) -> None:
        super().__init__()
        width = config.hidden_size
        self.head_dim = config.head_dim or width // config.num_heads
        heads = width // self.head_dim
        for letter in "rwkvag":
            self.register_parameter(f"x_{letter}", nn.Parameter(torch.zeros(1, 1, width)))
        self.k_k, self.k_a = (nn.Parameter(torch.zeros(width)) for _ in range(2))
        self.r_k = nn.Parameter(torch.zeros(heads, self.head_dim))
        self.r_proj, self.k_proj, self.v_proj, self.o_proj = (
            nn.Linear(width, width, bias=False) for _ in range(4)
        )
        self.w_lora = LoRA(width, config.decay_low_rank_dim, nn.Tanh())
        self.a_lora = LoRA(width, config.a_low_rank_dim, nn.Identity())
        self.g_lora = LoRA(width, config.gate_low_rank_dim, nn.Sigmoid(), bias=False)
        if layer:
            self.v_lora = LoRA(width, config.v_low_rank_dim, nn.Identity())
        self.g_norm = nn.GroupNorm(heads, width, eps=self.head_dim * config.norm_eps)

    def forward(self, x: Tensor, first: Tensor | None) -> tuple[Tensor, Tensor]:
        """x: T D, first: the values of the first layer, T D, or None in it -> T D, and these values."""
        change = F.pad(x, (0, 0, 1, 0))[:-1] - x
        r, w, k, v, a, g = (x + change * getattr(self, f"x_{letter}")[0, 0] for letter in "rwkvag")
        r, k, own = self.r_proj(r), self.k_proj(k), self.v_proj(v)
        values = own if first is None else torch.lerp(own, first, self.v_lora(v).sigmoid())
        decay = torch.exp(-0.6065306597126334 * self.w_lora(w).sigmoid())
        a, g = self.a_lora(a).sigmoid(), self.g_lora(g)
        heads = (-1, self.head_dim)
        removal = F.normalize((k * self.k_k).unflatten(-1, heads), dim=-1)  # T H K
        k = k + k * (a - 1) * self.k_a
        r, k, v, a, decay = (each.unflatten(-1, heads) for each in (r, k, values, a, decay))
        state, outputs = x.new_zeros(r.shape[1], self.head_dim, self.head_dim), []  # H V K
        for t in range(len(x)):
            recalled = state @ removal[t, :, :, None]  # H V 1
            state = state * decay[t, :, None] - recalled * (removal[t] * a[t])[:, None]
            state = state + v[t, :, :, None] * k[t, :, None]
            outputs.append((state @ r[t, :, :, None])[..., 0])
        mixed = self.g_norm(torch.stack(outputs).flatten(1)).unflatten(-1, heads)
        mixed = mixed + (r * k * self.r_k).sum(-1, keepdim=True) * v
        return self.o_proj(mixed.flatten(1) * g), own if first is None else first


class FeedForward(nn.Module):
    """Channel mixing of one row."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        width = config.hidden_size
        ratio = 4 if config.hidden_ratio is None else config.hidden_ratio
        hidden = config.intermediate_size or -(-int(width * ratio) // 32) * 32
        self.x_k = nn.Parameter(torch.zeros(width))
        self.key, self.value = (
            nn.Linear(width, hidden, bias=False),
            nn.Linear(hidden, width, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        change = F.pad(x, (0, 0, 1, 0))[:-1] - x
        mixed: Tensor = self.value(F.relu(self.key(x + change * self.x_k)) ** 2)
        return mixed


class Block(nn.Module):
    """One layer."""

    def __init__(self, config: Any, layer: int) -> None:
        super().__init__()
        width, eps, bias = config.hidden_size, config.norm_eps, config.norm_bias
        if config.norm_first and layer == 0:
            self.pre_norm: nn.Module = nn.LayerNorm(width, eps, bias=bias)
        self.attn_norm, self.ffn_norm = (nn.LayerNorm(width, eps, bias=bias) for _ in range(2))
        self.attn, self.ffn = Attention(config, layer), FeedForward(config)

    def forward(self, x: Tensor, first: Tensor | None) -> tuple[Tensor, Tensor]:
        if hasattr(self, "pre_norm"):
            x = self.pre_norm(x)
        mixed, first = self.attn(self.attn_norm(x), first)
        x = x + mixed
        return x + self.ffn(self.ffn_norm(x)), first


class Base(PreTrainedModel):
    """The base of the classes."""

    config_class = RWKV7Config
    base_model_prefix = "model"


class RWKV7Model(Base):
    """The body; padding has no part in what it computes for the other tokens of a row."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Block(config, layer) for layer in range(config.num_hidden_layers))
        self.norm = nn.LayerNorm(config.hidden_size, config.norm_eps, bias=config.norm_bias)
        self.post_init()

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> BaseModelOutput:
        real = (torch.ones_like(input_ids) if attention_mask is None else attention_mask).bool()
        x = self.embeddings(input_ids)
        rows = []
        for row, kept in zip(x, real, strict=True):
            tokens, first = row[kept], None
            for layer in self.layers:
                tokens, first = layer(tokens, first)
            rows.append(torch.zeros_like(row).index_put((kept,), tokens))
        return BaseModelOutput(last_hidden_state=self.norm(torch.stack(rows)))


class RWKV7ForCausalLM(Base):
    """Scores of the next token."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.model = RWKV7Model(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> CausalLMOutput:
        hidden = self.model(input_ids, attention_mask).last_hidden_state
        return CausalLMOutput(logits=self.lm_head(hidden))
