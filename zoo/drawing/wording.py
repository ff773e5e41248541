"""Titles and details of the parts in drawings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from specs.base import registry
from specs.base.base import Component, Spec
from specs.kinds.attention import MultiHeadShape
from specs.kinds.conformer import ConvolutionModule
from specs.kinds.disentangled import Disentangled
from specs.kinds.embedding import EmbeddingKind, Patches, Spectrogram
from specs.kinds.feed_forward import Gated, TwoLayer
from specs.kinds.frames import FramesKind
from specs.kinds.head import AttentionPooling, AtToken, Pooling
from specs.kinds.latent import Latent
from specs.kinds.mixture import Mixture
from specs.kinds.packed_patches import PackedPatches
from specs.kinds.patch_positions import AxialRope, RelativeBias2d
from specs.kinds.position import Alibi, Convolutional, Learned, RelativeBias, Rope, Sinusoidal
from specs.kinds.relative_key import RelativeKey
from specs.kinds.relative_sinusoidal import RelativeSinusoidal
from specs.kinds.rope_scaling import ProportionalScaling
from specs.kinds.sharing import Sharing
from specs.kinds.side_by_side import SideBySide
from specs.kinds.waveform import SampledKind
from zoo.core.units import number_text

TIMES = "\u00d7"

TITLES = {
    "layer_norm": "LayerNorm",
    "batch_norm": "BatchNorm",
    "rms_norm": "RMSNorm",
    "multi_head": "Multi-head attention",
    "grouped_query": "Grouped-query attention",
    "multi_query": "Multi-query attention",
    "latent": "Latent attention",
    "short_convolution": "Short convolution",
    "gated_delta_net": "Gated DeltaNet",
    "kimi_delta_attention": "Kimi Delta Attention",
    "mamba2": "Mamba-2",
    "rg_lru": "RG-LRU",
    "rwkv7": "RWKV-7",
    "rwkv_channel_mix": "RWKV channel mix",
    "mlp": "Feed-forward",
    "gated": "Gated feed-forward",
    "mixture": "Mixture of experts",
    "side_by_side": "Feed-forwards side by side",
    "rope": "RoPE",
    "axial_rope": "Axial RoPE",
    "alibi": "ALiBi",
    "relative_bias": "Relative bias",
    "relative_bias_2d": "2-D relative bias",
    "disentangled": "Disentangled attention",
    "learned": "Learned positions",
    "convolutional": "Convolutional positions",
    "sinusoidal": "Sinusoidal positions",
    "tokens": "Token embedding",
    "layer_scale": "LayerScale",
    "per_layer_embedding": "Embedding of this layer",
    "output_scale": "Scale",
    "beside_embedding": "Concatenate embedding",
}
"""Titles of built-in kinds; others use their own names."""

ACTIVATIONS = {
    "relu": "ReLU",
    "relu2": "ReLU\u00b2",
    "gelu": "GELU",
    "gelu_tanh": "GELU (tanh)",
    "quick_gelu": "quick GELU",
    "silu": "SiLU",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "identity": "no activation",
    "xielu": "xIELU",
}
GATES = {
    "silu": "SwiGLU",
    "gelu": "GeGLU",
    "gelu_tanh": "GeGLU (tanh)",
    "quick_gelu": "GeGLU (quick)",
    "relu": "ReGLU",
    "relu2": "ReGLU (squared)",
    "sigmoid": "GLU",
    "tanh": "GLU with tanh",
    "identity": "bilinear",
    "xielu": "GLU with xIELU",
}
"""Gated feed-forwards by their activation (Shazeer, 2020)."""


def title(kind: str) -> str:
    """The name of a kind."""
    return TITLES.get(kind, kind.replace("_", " ").capitalize())


def sizes(*of: int | str) -> str:
    """Sizes as a product: rows times columns."""
    return f" {TIMES} ".join(f"{size:,}" if isinstance(size, int) else size for size in of)


def attention_details(spec: Component, d_model: int, *, causal: bool, cross: bool = False) -> list[str]:
    """Heads, masking, and changes to the scores."""
    sees = [] if cross else ["causal" if causal else "bidirectional"]
    if isinstance(spec, Latent):
        queries = [] if spec.query_rank is None else [f"queries of rank {spec.query_rank:,}"]
        return [
            f"{spec.heads:,} heads {TIMES} ({spec.head_dim} + {spec.rope_dim})",
            f"values {spec.value_dim} wide",
            *queries,
            f"keys and values of rank {spec.kv_rank:,}",
            *sees,
        ]
    if not isinstance(spec, MultiHeadShape):
        return [*plain_fields_text(spec), *sees]
    width, groups = spec.head_width(d_model), spec.key_value_heads
    heads = [f"{spec.heads:,} heads {TIMES} {width:,}"]
    if groups != spec.heads:
        heads = [
            f"{spec.heads:,} query heads {TIMES} {width:,}",
            f"{groups:,} key-value head{'s' if groups > 1 else ''}",
        ]
    details = heads + sees
    if spec.window is not None:
        details.append(f"window {spec.window:,}" if causal else f"window ±{spec.window // 2:,}")
    if spec.block_summaries is not None:
        details.append(f"sums of blocks of {spec.block_summaries.size:,}")
    if spec.chunk is not None:
        details.append(f"chunk {spec.chunk:,}")
    if spec.patch_window is not None:
        details.append(f"windows of {spec.patch_window:,} {TIMES} {spec.patch_window:,} patches")
    if spec.scale is not None and abs(spec.scale * width**0.5 - 1) > 1e-6:
        details.append("unscaled" if spec.scale == 1 else f"scale {number_text(spec.scale)}")
    if spec.softcap is not None:
        details.append(f"softcap {number_text(spec.softcap)}")
    if spec.clip is not None:
        details.append(f"clip ±{number_text(spec.clip)}")
    if spec.reuses_keys_values:
        details.append("keys and values of an earlier layer")
    if spec.values == "keys" and not spec.reuses_keys_values:
        details.append("keys as values")
    if spec.value_norm is not None and not spec.reuses_keys_values:
        details.append(f"{title(spec.value_norm.kind)} of values")
    if spec.sinks:
        details.append("sinks")
    if spec.output_gate:
        details.append("gated output")
    return details + multiplied(spec.multipliers)


def convolution_details(spec: ConvolutionModule, d_model: int) -> list[str]:
    """Widths, kernel, norm and activation of the convolution in a conformer block."""
    norm = [] if spec.norm.kind == "none" else [title(spec.norm.kind)]
    widths = f"{d_model:,} → {sizes(2, d_model)} → {d_model:,}"
    sees = ["causal"] if spec.causal else []
    return [widths, f"kernel {spec.kernel}", *sees, *norm, ACTIVATIONS[spec.activation]]


def feed_forward_title(spec: Component) -> str:
    """The title of a feed-forward, with its gate."""
    return f"Feed-forward, {GATES[spec.activation]}" if isinstance(spec, Gated) else title(spec.kind)


def feed_forward_details(spec: Component, d_model: int, reads: int | None = None) -> list[str]:
    """Widths and activation, or experts and their routing; ``reads`` is the width of the input where it is another."""
    if isinstance(spec, Mixture):
        return list(_mixture_details(spec))
    if isinstance(spec, SideBySide):
        return [detail for branch in spec.branches.values() for detail in _of_branch(branch.feed_forward)]
    if not isinstance(spec, TwoLayer):
        return plain_fields_text(spec)
    hidden = sizes(2, spec.hidden) if isinstance(spec, Gated) else f"{spec.hidden:,}"
    widths = f"{reads or d_model:,} → {hidden} → {d_model:,}"
    details = [widths] if isinstance(spec, Gated) else [widths, ACTIVATIONS[spec.activation]]
    if isinstance(spec, Gated) and spec.limit is not None:
        details.append(f"limit {number_text(spec.limit)}")
    if isinstance(spec, Gated) and spec.up_offset is not None:
        details.append(f"up {spec.up_offset:+g}")
    return details + (multiplied(spec.multipliers) if isinstance(spec, Gated) else [])


def _of_branch(spec: Component) -> Iterator[str]:
    """A feed-forward among others, or its experts."""
    if isinstance(spec, Mixture):
        yield from _mixture_details(spec)
    else:
        yield feed_forward_words(spec)


def sharing_details(sharing: Sharing | None, part: Literal["attention", "feed_forward"]) -> list[str]:
    """How layers share the weights of a part, and the adapters in which they differ."""
    if sharing is None:
        return []
    sets = "shared by layers" if sharing.sets == 1 else f"{sharing.sets} shared sets in turn"
    adapters = sharing.adapters
    adapted = adapters is not None and getattr(adapters, part)
    return [sets, f"adapters of rank {adapters.rank:,}"] if adapters is not None and adapted else [sets]


def multiplied(multipliers: Spec) -> list[str]:
    """The parts that a constant factor other than 1 scales."""
    factors = {name: getattr(multipliers, name) for name in type(multipliers).model_fields}
    return [f"{name} {TIMES} {number_text(factor)}" for name, factor in factors.items() if factor != 1.0]


def _mixture_details(spec: Mixture) -> Iterator[str]:
    router = spec.router
    yield f"{spec.top_k} of {spec.experts:,} experts"
    yield feed_forward_words(spec.expert)
    if spec.shared is not None:
        yield f"shared: {feed_forward_words(spec.shared)}{', gated' if spec.shared_gate else ''}"
    correction = " with correction" if router.score_correction_bias else ""
    weighing = ", weighs inputs" if router.weighs == "input" else ""
    yield f"{router.scores.replace('_', ' ')} router{correction}{weighing}"
    if router.groups is not None:
        yield f"{router.groups.top} of {router.groups.count} groups"


def feed_forward_words(spec: Component) -> str:
    """The activation, or gate, and the width of the hidden layer."""
    if isinstance(spec, TwoLayer):
        name = GATES[spec.activation] if isinstance(spec, Gated) else ACTIVATIONS[spec.activation]
        return f"{name} {spec.hidden:,}"  # fmt: skip
    return title(spec.kind)


def position_details(spec: Component, rows: int | None, width: int) -> list[str]:
    """The details of a position; ``rows``: those of its table; ``width``: that of a head or of the stream."""
    if isinstance(spec, Rope):
        part = [] if spec.dimensions in (None, width) else [f"{spec.dimensions} of {width} dims"]
        scaling = [] if spec.scaling is None else [_scaling(spec.scaling)]
        axes = [] if spec.sections is None else ["frames, rows and columns"]
        turned = ["of the input"] if spec.rotates == "input" else []
        return [f"θ {number_text(spec.theta)}", *part, *scaling, *axes, *turned]
    if isinstance(spec, AxialRope):
        return [f"θ {number_text(spec.theta)}", "rows and columns"]
    if isinstance(spec, Alibi):
        return [
            f"slope {TIMES} distance",
            "added to scores",
            *([] if spec.scale == 1 else [f"scale {number_text(spec.scale)}"]),
        ]
    if isinstance(spec, RelativeBias):
        return [f"{spec.buckets} buckets", f"distance < {spec.max_distance}", "added to scores"]
    if isinstance(spec, RelativeBias2d):
        return ["by row and column", "added to scores"]
    if isinstance(spec, Convolutional):
        return [f"kernel {spec.kernel}", f"{spec.groups} groups", ACTIVATIONS[spec.activation]]
    if isinstance(spec, Disentangled):
        return [
            f"{2 * spec.per_side} distance vectors",
            f"distance < {spec.max_distance}",
            "compared with queries and keys" if spec.terms == "both" else spec.terms.replace("_", " "),
        ]
    if isinstance(spec, RelativeKey):
        return [f"distances {-spec.before} to {spec.after}", "compared with queries"]
    if isinstance(spec, RelativeSinusoidal):
        return ["distances, projected", "compared with queries"]
    if isinstance(spec, Learned):
        return [sizes(rows or 0, width)]
    if isinstance(spec, Sinusoidal):
        return ["fixed", *([sizes(rows, width)] if rows else [])]
    return plain_fields_text(spec)


def _scaling(spec: Component) -> str:
    if isinstance(spec, ProportionalScaling):
        return f"{spec.fraction:.0%} of pairs"
    factor = getattr(spec, "factor", None)
    return f"{spec.kind} {TIMES} {number_text(factor)}" if factor else spec.kind


def input_words(spec: EmbeddingKind) -> str:
    """Return the label of the input."""
    if isinstance(spec, SampledKind):
        return "Samples"
    if isinstance(spec, Spectrogram | FramesKind):
        return "Log-mel spectrogram"
    return {Patches: "Image", PackedPatches: "Patches of images"}.get(type(spec), "Tokens")


def pooling_words(pooling: Pooling) -> str:
    """Return the label of the pooling."""
    if isinstance(pooling, AttentionPooling):
        return "by attention"
    if isinstance(pooling, AtToken):
        return "at the highest token id" if pooling.token == "highest" else f"at token {pooling.token}"
    if pooling in ("first", "last"):
        return f"{pooling} token"
    return f"{pooling.replace('_', ' ')} of tokens"


def plain_fields_text(spec: Component) -> list[str]:
    """Return the plain fields of a spec of any kind, such as a plugin's."""
    fields = {name: getattr(spec, name) for name in type(spec).model_fields if name != "kind"}
    return [
        f"{name.replace('_', ' ')} {printable(value) if isinstance(value, str) else number_text(value)}"
        for name, value in fields.items()
        if isinstance(value, int | float | str) and not isinstance(value, bool)
    ]


def printable(text: str) -> str:
    """A user's text without control characters."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def slot_of(kind: str) -> str | None:
    """The slot of a block's part by its kind, or None."""
    slots = ("norm", "attention", "mixer", "feed_forward", "position")
    return next((slot for slot in slots if kind in registry.kinds(slot)), None)
