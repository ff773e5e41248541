"""The details of mixers in drawings: heads or channels, the state of each, and the width of convolutions."""

from __future__ import annotations

from functools import singledispatch

from specs.base.base import Component
from specs.kinds.delta import GatedDeltaNet, KimiDeltaAttention
from specs.kinds.linear_attention import LinearAttention
from specs.kinds.mamba import Mamba
from specs.kinds.mamba2 import Mamba2
from specs.kinds.rg_lru import RGLRU
from specs.kinds.rwkv import RWKV7, RWKVChannelMix
from specs.kinds.short_convolution import ShortConvolution
from zoo.drawing.wording import ACTIVATIONS, TIMES, plain_fields_text


@singledispatch
def mixer_details(spec: Component) -> list[str]:
    """Heads or channels, states and kernel of a mixer; the plain fields of a plugin's."""
    return plain_fields_text(spec)


@mixer_details.register
def _(spec: ShortConvolution) -> list[str]:
    return [_kernel(spec.kernel_size)]


@mixer_details.register
def _(spec: GatedDeltaNet) -> list[str]:
    shared = [] if spec.key_heads == spec.heads else [f"{spec.key_heads:,} key heads"]
    return [_heads(spec.heads, spec.key_width, spec.value_width), *shared, _kernel(spec.kernel_size)]


@mixer_details.register
def _(spec: KimiDeltaAttention) -> list[str]:
    return [_heads(spec.heads, spec.head_dim, spec.head_dim), _kernel(spec.kernel_size)]


@mixer_details.register
def _(spec: LinearAttention) -> list[str]:
    return [_heads(spec.heads, spec.key_width, spec.value_width), f"decay: {spec.decay.kind}"]


@mixer_details.register
def _(spec: Mamba) -> list[str]:
    apart = [] if spec.heads == 1 else [f"in {spec.heads:,} heads"]
    return [f"{spec.width:,} channels {TIMES} {spec.state_size:,} states", *apart, _kernel(spec.kernel_size)]


@mixer_details.register
def _(spec: Mamba2) -> list[str]:
    shared = [] if spec.groups == 1 else [f"{spec.groups:,} groups"]
    return [_heads(spec.heads, spec.state_size, spec.head_dim), *shared, _kernel(spec.kernel_size)]


@mixer_details.register
def _(spec: RGLRU) -> list[str]:
    return [f"{spec.width:,} channels", f"gates in {spec.heads:,} blocks", _kernel(spec.kernel_size)]


@mixer_details.register
def _(spec: RWKV7) -> list[str]:
    mixed = [] if spec.value_rank is None else ["values mixed with the first layer's"]
    return [_heads(spec.heads, spec.head_dim, spec.head_dim), *mixed]


@mixer_details.register
def _(spec: RWKVChannelMix) -> list[str]:
    return [f"{spec.hidden:,} wide, over 2 tokens", ACTIVATIONS[spec.activation]]


def _heads(count: int, keys: int, values: int) -> str:
    return f"{count:,} heads, states {keys:,} {TIMES} {values:,}"


def _kernel(size: int) -> str:
    return f"convolution over {size} tokens"
