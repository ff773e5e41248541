"""Bytes of memory, from the built modules: weights, caches, and the training state without activations."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from zoo.components.mixer import Mixer, StateTensor
from zoo.core.tensors import weight_tensors
from zoo.reports.folding import Folded, once

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
"""The precisions of training, caches and activations."""

FULL = torch.float32


@dataclass(frozen=True)
class _Stored:
    """The values of a model's floating-point weights and buffers, the bytes of its other ones, and the values of its parameters."""

    floats: int
    others: int
    parameters: int


@once
def _stored(folded: Folded) -> _Stored:
    floats = others = parameters = 0
    for name, tensor in weight_tensors(folded.model):
        values = tensor.numel() * folded.copies(name)
        if tensor.dtype.is_floating_point:
            floats += values
        else:
            others += values * tensor.itemsize
        if isinstance(tensor, nn.Parameter):
            parameters += values
    return _Stored(floats, others, parameters)


def stored_bytes(folded: Folded, dtype: torch.dtype) -> int:
    """Bytes of weights and buffers, each stored once, with floats in a dtype."""
    stored = _stored(folded)
    return stored.floats * dtype.itemsize + stored.others


@dataclass(frozen=True)
class CachedLayers:
    """``layers`` equal layers: cached values per token, and the attention window or the size of its chunks, if any.

    ``latent``: values per token for a runtime that caches latents and recomputes keys and values from them.
    ``state``: bytes per sequence of states whose size does not grow with its tokens.
    """

    layers: int
    values: int
    window: int | None
    latent: int | None
    state: int


@dataclass(frozen=True)
class CacheSizes:
    """The cache of a decoder: for its own tokens, and values per encoder token."""

    own: tuple[CachedLayers, ...]
    encoder: int
    dtype: torch.dtype

    @property
    def bytes_per_token(self) -> int:
        """Bytes per decoder token in all layers, before any window is full."""
        return sum(group.layers * group.values for group in self.own) * self.dtype.itemsize

    @property
    def state_bytes(self) -> int:
        """Bytes per sequence, whatever its length, in all layers."""
        return sum(group.layers * group.state for group in self.own)

    @property
    def encoder_bytes_per_token(self) -> int:
        """Bytes per encoder token in all layers."""
        return self.encoder * self.dtype.itemsize

    @property
    def latent_bytes_per_token(self) -> int | None:
        """``bytes_per_token`` for a runtime that caches latents; None without latent attention."""
        if all(group.latent is None for group in self.own):
            return None
        values = sum(
            group.layers * (group.values if group.latent is None else group.latent) for group in self.own
        )
        return values * self.dtype.itemsize

    @property
    def form(self) -> str:
        """The form in which tokens are counted, where runtimes differ: latent attention is exported with keys and values."""
        return "" if self.latent_bytes_per_token is None else "keys and values of all heads"

    @property
    def windowed(self) -> bool:
        """Whether any layer has an attention window."""
        return any(group.window is not None for group in self.own)

    def needed(self, batch: int, length: int, source: int = 0) -> int:
        """Bytes after ``length`` tokens of ``batch`` sequences, without tokens that windows have passed."""
        tokens = sum(group.layers * group.values * min(length, group.window or length) for group in self.own)
        return batch * ((tokens + self.encoder * source) * self.dtype.itemsize + self.state_bytes)

    def held(self, batch: int, length: int, source: int = 0) -> int:
        """Bytes of the exported caches, which keep every token."""
        growing = length * self.bytes_per_token + source * self.encoder_bytes_per_token
        return batch * (growing + self.state_bytes)

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "bytes_per_token": self.bytes_per_token,
            "encoder_bytes_per_token": self.encoder_bytes_per_token,
            "form": self.form,
            "latent_bytes_per_token": self.latent_bytes_per_token,
            "state_bytes": self.state_bytes,
            "windows": [
                {
                    "layers": group.layers,
                    "window": group.window,
                    "bytes_per_token": group.values * self.dtype.itemsize,
                }
                for group in self.own
                if group.values
            ],
        }


def cache(folded: Folded, dtype: torch.dtype) -> CacheSizes | None:
    """The cache of a decoder with weights in a dtype; None for an encoder."""
    model = folded.model
    if not folded.spec.decodes:
        return None
    own: Counter[tuple[int, int | None, int | None, int]] = Counter()
    encoder = 0
    for built, layers in Counter(folded.stacks["decoder"].like).items():
        block: Any = model.get_submodule(f"decoder.blocks.{built}")
        attention: Mixer | None = block.attention
        latent, window = (attention.latent_width, attention.visible_limit) if attention else (None, None)
        constant = sum(
            tensor.values * (tensor.dtype or dtype).itemsize for tensor in block.state if not tensor.grows
        )
        own[_values(block.state), window, latent, constant] += layers
        if block.cross_attention is not None:
            encoder += layers * _values(block.cross_attention.state)
    return CacheSizes(
        tuple(CachedLayers(layers, *sizes) for sizes, layers in own.items()),
        encoder,
        dtype,
    )


def _values(state: tuple[StateTensor, ...]) -> int:
    """The values per token."""
    return sum(tensor.values for tensor in state if tensor.grows)


@dataclass(frozen=True)
class TrainingState:
    """Bytes of a training step without activations: weights, gradients and Adam's state.

    Adam keeps two moments in float32, and a float32 copy of weights in half precision.
    """

    weights: int
    gradients: int
    moments: int
    master: int

    @classmethod
    def of(cls, folded: Folded, dtype: torch.dtype) -> TrainingState:
        """The state of a model with weights in a dtype; each parameter counts once."""
        parameters = _stored(folded).parameters
        return cls(
            weights=stored_bytes(folded, dtype),
            gradients=parameters * dtype.itemsize,
            moments=2 * parameters * FULL.itemsize,
            master=parameters * FULL.itemsize if dtype != FULL else 0,
        )

    @property
    def total(self) -> int:
        """The sum of all parts."""
        return self.weights + self.gradients + self.moments + self.master

    def as_dict(self) -> dict[str, int]:
        """As JSON data."""
        return {
            "weights": self.weights,
            "gradients": self.gradients,
            "adam_moments": self.moments,
            "master_weights": self.master,
            "total": self.total,
        }
