"""Bytes of memory: weights, caches, and what a training step keeps beside activations.  All from the built modules."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch

from specs.model import Model
from zoo.builder import assemble
from zoo.components.attention import Projections
from zoo.components.latent import Latent
from zoo.models.decoder import Decoder
from zoo.models.encoder_decoder import EncoderDecoder
from zoo.reports.folding import Folded
from zoo.reports.layers import layer_kinds
from zoo.tensors import weight_tensors
from zoo.twin import twin

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
"""The precisions in which models are trained, and their caches and activations kept."""

FULL = torch.float32


def stored_bytes(folded: Folded, dtype: torch.dtype) -> int:
    """The weights with buffers beside them, each stored once, as floats of a dtype."""
    return sum(
        tensor.numel()
        * (dtype if tensor.dtype.is_floating_point else tensor.dtype).itemsize
        * folded.copies(name)
        for name, tensor in weight_tensors(folded.model)
    )


@dataclass(frozen=True)
class CachedLayers:
    """``layers`` alike: values of keys and values per token, and how many of the last tokens are ever seen again.

    ``latent`` is how many values per token a runtime needs that keeps latents and makes keys and values of them anew.
    """

    layers: int
    values: int
    window: int | None
    latent: int | None


@dataclass(frozen=True)
class Cache:
    """The keys and values of a decoder: of its own tokens, and per token of an encoder."""

    own: tuple[CachedLayers, ...]
    encoder: int
    dtype: torch.dtype

    @property
    def bytes_per_token(self) -> int:
        """Of one more token in every layer, while no window is full; without the encoder's."""
        return sum(each.layers * each.values for each in self.own) * self.dtype.itemsize

    @property
    def encoder_bytes_per_token(self) -> int:
        """Of one token of the encoder, in all layers."""
        return self.encoder * self.dtype.itemsize

    @property
    def latent_bytes_per_token(self) -> int | None:
        """As ``bytes_per_token`` where latents are kept in the place of keys and values; None where there are none."""
        if all(each.latent is None for each in self.own):
            return None
        values = sum(each.layers * (each.values if each.latent is None else each.latent) for each in self.own)
        return values * self.dtype.itemsize

    @property
    def windowed(self) -> bool:
        """Whether some layer sees only the last tokens."""
        return any(each.window is not None for each in self.own)

    def needed(self, batch: int, length: int, source: int = 0) -> int:
        """Bytes after ``length`` tokens of ``batch`` sequences, where windows drop what they have passed."""
        tokens = sum(each.layers * each.values * min(length, each.window or length) for each in self.own)
        return batch * (tokens + self.encoder * source) * self.dtype.itemsize

    def held(self, batch: int, length: int, source: int = 0) -> int:
        """Bytes of the caches that the model gives and takes, which keep every token."""
        return batch * (length * self.bytes_per_token + source * self.encoder_bytes_per_token)

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "bytes_per_token": self.bytes_per_token,
            "encoder_bytes_per_token": self.encoder_bytes_per_token,
            "latent_bytes_per_token": self.latent_bytes_per_token,
            "windows": [
                {
                    "layers": each.layers,
                    "window": each.window,
                    "bytes_per_token": each.values * self.dtype.itemsize,
                }
                for each in self.own
            ],
        }


def cache(spec: Model, dtype: torch.dtype) -> Cache | None:
    """The cache of a spec's decoder with weights in a dtype; None for an encoder."""
    small = twin(spec, layers=1)
    model = assemble(small)
    if not isinstance(model, Decoder | EncoderDecoder):
        return None
    own: Counter[tuple[int, int | None, int | None]] = Counter()
    encoder = 0
    for kind, layers in layer_kinds(spec, small).items():
        if not kind.startswith("decoder."):
            continue
        block: Any = model.get_submodule(kind)
        latent = (
            block.attention.kv_rank + block.attention.rotated if isinstance(block.attention, Latent) else None
        )
        own[_values(block.attention), getattr(block.attention, "window", None), latent] += len(layers)
        if block.cross_attention is not None:
            encoder += len(layers) * _values(block.cross_attention)
    return Cache(
        tuple(
            CachedLayers(layers, values, window, latent) for (values, window, latent), layers in own.items()
        ),
        encoder,
        dtype,
    )


def _values(attention: Projections | Latent) -> int:
    heads, key, value = attention.cached
    return heads * (key + value)


@dataclass(frozen=True)
class TrainingState:
    """Bytes that a training step has beside activations: weights, gradients, and what Adam keeps.

    Adam keeps two moments in float32, and a copy of the weights in float32 where they are halves.
    """

    weights: int
    gradients: int
    moments: int
    master: int

    @classmethod
    def of(cls, folded: Folded, dtype: torch.dtype) -> TrainingState:
        """Of a model with weights in a dtype; each parameter counts once."""
        weights = folded.model.named_parameters()
        parameters = sum(weight.numel() * folded.copies(name) for name, weight in weights)
        return cls(
            weights=stored_bytes(folded, dtype),
            gradients=parameters * dtype.itemsize,
            moments=2 * parameters * FULL.itemsize,
            master=parameters * FULL.itemsize if dtype != FULL else 0,
        )

    @property
    def total(self) -> int:
        """All of it."""
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
