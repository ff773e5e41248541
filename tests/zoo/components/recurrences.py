"""Recurrences over tokens, one token at a time, and inputs drawn for them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class DeltaInputs(NamedTuple):
    """What the gated delta rule reads."""

    query: Tensor
    key: Tensor
    value: Tensor
    decay: Tensor
    beta: Tensor
    state: Tensor

    def to(self, dtype: torch.dtype) -> DeltaInputs:
        """The same in another dtype."""
        return DeltaInputs(*(each.to(dtype) for each in self))


def drawn_delta_inputs(
    tokens: int,
    *,
    batch: int = 2,
    groups: int = 2,
    heads: int = 4,
    width: int = 5,
    out: int = 3,
    per_channel: bool = False,
    strength: float = 1.0,
    seed: int = 0,
) -> DeltaInputs:
    """Random inputs in float64: keys of length 1, decays of about ``strength`` in logarithms."""
    generator = torch.Generator().manual_seed(seed)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    key = torch.nn.functional.normalize(drawn(batch, groups, tokens, width), dim=-1)
    decay = -drawn(batch, heads, tokens, *([width] if per_channel else [])).exp() * strength
    return DeltaInputs(
        drawn(batch, groups, tokens, width), key, drawn(batch, heads, tokens, out), decay,
        drawn(batch, heads, tokens).sigmoid(), drawn(batch, heads, width, out),
    )  # fmt: skip


class GeneralizedInputs(NamedTuple):
    """What the generalized delta rule reads, with the removal key and the update rate of RWKV-7."""

    query: Tensor
    key: Tensor
    value: Tensor
    decay: Tensor
    removal: Tensor
    update: Tensor
    state: Tensor

    def to(self, dtype: torch.dtype) -> GeneralizedInputs:
        """The same in another dtype."""
        return GeneralizedInputs(*(each.to(dtype) for each in self))

    @property
    def given(self) -> tuple[Tensor, ...]:
        """The arguments of ``zoo.functional.generalized_delta_rule``, without the mask."""
        query, key, value, decay, removal, update, state = self
        return query, key, value, decay, removal * (-decay).exp(), removal * update, state


def drawn_generalized_inputs(
    tokens: int,
    *,
    batch: int = 2,
    heads: int = 3,
    width: int = 5,
    out: int = 3,
    strength: float = 0.6,
    seed: int = 0,
) -> GeneralizedInputs:
    """Random inputs in float64: removal keys of length 1, decays of at most ``strength`` in logarithms."""
    generator = torch.Generator().manual_seed(seed)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    keys = (batch, heads, tokens, width)
    return GeneralizedInputs(
        drawn(*keys), drawn(*keys), drawn(batch, heads, tokens, out), drawn(*keys).sigmoid() * -strength,
        torch.nn.functional.normalize(drawn(*keys), dim=-1), drawn(*keys).sigmoid(),
        drawn(batch, heads, width, out),
    )  # fmt: skip


def generalized_rule_by_tokens(inputs: GeneralizedInputs, real: Tensor | None) -> tuple[Tensor, Tensor]:
    """S_t = S_{t-1} (diag(w_t) - removal_t^T (update_t * removal_t)) + value_t^T key_t, y_t = S_t query_t^T, as the paper of
    RWKV-7 has it, with states of values by keys; padding leaves the state as it is."""
    query, key, value, decay, removal, update, state = inputs
    state, outputs = state.transpose(2, 3), []
    for t in range(value.shape[2]):
        erased = removal[:, :, t, :, None] * (update * removal)[:, :, t, None, :]
        transition = torch.diag_embed(decay[:, :, t].exp()) - erased
        after = state @ transition + value[:, :, t, :, None] * key[:, :, t, None, :]
        state = after if real is None else torch.where(real[:, t, None, None, None] != 0, after, state)
        outputs.append((state @ query[:, :, t, :, None])[..., 0])
    return torch.stack(outputs, 2), state.transpose(2, 3)


def drawn_mask(batch: int, tokens: int, seed: int = 0) -> Tensor:
    """A mask with padding anywhere: B T."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(batch, tokens, generator=generator) > 0.3).to(torch.int64)


def delta_rule_by_tokens(inputs: DeltaInputs, real: Tensor | None) -> tuple[Tensor, Tensor]:
    """The gated delta rule, as its formula has it; padding leaves the state as it is."""
    query, key, value, decay, beta, state = inputs
    heads, outputs = value.shape[1], []
    query, key = (x.repeat_interleave(heads // x.shape[1], 1) for x in (query, key))
    for t in range(value.shape[2]):
        factor = decay[:, :, t].exp()
        forgotten = state * (factor[..., None, None] if factor.ndim == 2 else factor[..., None])
        recalled = torch.einsum("bhkv,bhk->bhv", forgotten, key[:, :, t])
        correction = (value[:, :, t] - recalled) * beta[:, :, t, None]
        after = forgotten + torch.einsum("bhk,bhv->bhkv", key[:, :, t], correction)
        state = after if real is None else torch.where(real[:, t, None, None, None] != 0, after, state)
        outputs.append(torch.einsum("bhkv,bhk->bhv", state, query[:, :, t]))
    return torch.stack(outputs, 2), state
