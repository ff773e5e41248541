"""What the parts of a model are called in drawings, and what is said of them."""

from __future__ import annotations

from collections.abc import Iterator

from specs import registry
from specs.attention import MultiHeadShape
from specs.base import Component
from specs.embedding import EmbeddingKind, Patches, Spectrogram
from specs.feed_forward import Gated, TwoLayer
from specs.head import AtToken, Pooling
from specs.latent import Latent
from specs.mixture import Mixture
from specs.position import Alibi, Learned, RelativeBias, Rope, Sinusoidal

TIMES = "\u00d7"

TITLES = {
    "layer_norm": "LayerNorm",
    "rms_norm": "RMSNorm",
    "multi_head": "Multi-head attention",
    "grouped_query": "Grouped-query attention",
    "multi_query": "Multi-query attention",
    "latent": "Latent attention",
    "mlp": "Feed-forward",
    "gated": "Gated feed-forward",
    "mixture": "Mixture of experts",
    "rope": "RoPE",
    "alibi": "ALiBi",
    "relative_bias": "Relative bias",
    "learned": "Learned positions",
    "sinusoidal": "Sinusoidal positions",
    "tokens": "Token embedding",
}
"""What the kinds of the language are called; others go by their own names."""

ACTIVATIONS = {
    "relu": "ReLU",
    "gelu": "GELU",
    "gelu_tanh": "GELU (tanh)",
    "quick_gelu": "quick GELU",
    "silu": "SiLU",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "identity": "no activation",
}
GATES = {
    "silu": "SwiGLU",
    "gelu": "GeGLU",
    "gelu_tanh": "GeGLU (tanh)",
    "quick_gelu": "GeGLU (quick)",
    "relu": "ReGLU",
    "sigmoid": "GLU",
    "tanh": "GLU with tanh",
    "identity": "bilinear",
}
"""Gated feed-forwards by their activation (Shazeer, 2020)."""


def title(kind: str) -> str:
    """The name of a kind."""
    return TITLES.get(kind, kind.replace("_", " ").capitalize())


def count_text(count: int) -> str:
    """A number of parameters: 1,536 as it is, larger ones to three digits, such as 12.3K, 124M or 6.74B."""
    if count < 10_000:
        return f"{count:,}"
    size, units = float(count), ["", "K", "M", "B", "T", "P"]
    while size >= 999.5 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f"{size:.{max(0, 3 - len(str(int(round(size, 2)))))}f}{units[0]}"


def sizes(*of: int | str) -> str:
    """Sizes as a product, such as those of a table: rows times columns."""
    return f" {TIMES} ".join(f"{size:,}" if isinstance(size, int) else size for size in of)


def number(value: float) -> str:
    """A number without digits that say nothing: 50, 0.0625, 500,000."""
    return f"{value:,.0f}" if value == int(value) and abs(value) < 1e9 else f"{value:.3g}"


def attention_details(spec: Component, d_model: int, *, causal: bool, cross: bool = False) -> list[str]:
    """Heads, what they see, and what happens to the scores."""
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
        return [*said(spec), *sees]
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
    if spec.scale is not None and abs(spec.scale * width**0.5 - 1) > 1e-6:
        details.append("unscaled" if spec.scale == 1 else f"scale {number(spec.scale)}")
    if spec.softcap is not None:
        details.append(f"softcap {number(spec.softcap)}")
    if spec.clip is not None:
        details.append(f"clip ±{number(spec.clip)}")
    if spec.sinks:
        details.append("sinks")
    return details


def feed_forward_title(spec: Component) -> str:
    """The name of a feed-forward, with that of its gate."""
    return f"Feed-forward, {GATES[spec.activation]}" if isinstance(spec, Gated) else title(spec.kind)


def feed_forward_details(spec: Component, d_model: int) -> list[str]:
    """Widths and activation, or experts and how they are chosen."""
    if isinstance(spec, Mixture):
        return list(_mixture_details(spec))
    if not isinstance(spec, TwoLayer):
        return said(spec)
    hidden = sizes(2, spec.hidden) if isinstance(spec, Gated) else f"{spec.hidden:,}"
    widths = f"{d_model:,} → {hidden} → {d_model:,}"
    details = [widths] if isinstance(spec, Gated) else [widths, ACTIVATIONS[spec.activation]]
    if isinstance(spec, Gated) and spec.limit is not None:
        details.append(f"limit {number(spec.limit)}")
    if isinstance(spec, Gated) and spec.up_offset is not None:
        details.append(f"up {spec.up_offset:+g}")
    return details


def _mixture_details(spec: Mixture) -> Iterator[str]:
    router = spec.router
    yield f"{spec.top_k} of {spec.experts:,} experts"
    yield _expert(spec.expert)
    if spec.shared is not None:
        yield f"shared: {_expert(spec.shared)}{', gated' if spec.shared_gate else ''}"
    yield f"{router.scores} router{' with correction' if router.correction else ''}"
    if router.groups is not None:
        yield f"{router.groups.top} of {router.groups.count} groups"


def _expert(spec: Component) -> str:
    if isinstance(spec, TwoLayer):
        name = GATES[spec.activation] if isinstance(spec, Gated) else ACTIVATIONS[spec.activation]
        return f"{name} {spec.hidden:,}"  # fmt: skip
    return title(spec.kind)


def position_details(spec: Component, rows: int | None, width: int) -> list[str]:
    """The numbers of a position; ``rows`` are those of its table, ``width`` that of a head or of the stream."""
    if isinstance(spec, Rope):
        part = [] if spec.dimensions in (None, width) else [f"{spec.dimensions} of {width} dims"]
        scaling = [] if spec.scaling is None else [_scaling(spec.scaling)]
        return [f"θ {number(spec.theta)}", *part, *scaling]
    if isinstance(spec, Alibi):
        return [
            f"slope {TIMES} distance",
            "added to scores",
            *([] if spec.scale == 1 else [f"scale {number(spec.scale)}"]),
        ]
    if isinstance(spec, RelativeBias):
        return [f"{spec.buckets} buckets", f"distance < {spec.max_distance}", "added to scores"]
    if isinstance(spec, Learned):
        return [sizes(rows or 0, width)]
    if isinstance(spec, Sinusoidal):
        return ["fixed", *([sizes(rows, width)] if rows else [])]
    return said(spec)


def _scaling(spec: Component) -> str:
    factor = getattr(spec, "factor", None)
    return f"{spec.kind} {TIMES} {number(factor)}" if factor else spec.kind


def input_words(spec: EmbeddingKind) -> str:
    """What goes in."""
    return {Patches: "Image", Spectrogram: "Log-mel spectrogram"}.get(type(spec), "Tokens")


def pooling_words(pooling: Pooling) -> str:
    """Which vector stands for a sequence."""
    if isinstance(pooling, AtToken):
        return f"at token {pooling.token}"
    if pooling in ("first", "last"):
        return f"{pooling} token"
    return f"{pooling.replace('_', ' ')} of tokens"


def said(spec: Component) -> list[str]:
    """The plain fields of a spec of any kind, such as a plugin's."""
    fields = {name: getattr(spec, name) for name in type(spec).model_fields if name != "kind"}
    return [
        f"{name.replace('_', ' ')} {printable(value) if isinstance(value, str) else number(value)}"
        for name, value in fields.items()
        if isinstance(value, int | float | str) and not isinstance(value, bool)
    ]


def printable(text: str) -> str:
    """A user's text without what no document holds: control characters."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def slot_of(kind: str) -> str | None:
    """The slot of a block's part by its kind, or None where no slot has it."""
    slots = ("norm", "attention", "feed_forward", "position")
    return next((slot for slot in slots if kind in registry.kinds(slot)), None)
