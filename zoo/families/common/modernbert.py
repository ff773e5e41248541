"""Common parts of ModernBERT as an encoder and as a decoder: their body, their classifiers and their tensors."""

from __future__ import annotations

from collections.abc import Sequence

from specs.kinds.norm import NoNorm
from specs.kinds.position import PositionKind
from zoo.families.common import fields as f
from zoo.families.common.attention import per_head
from zoo.families.common.blocks import gated, multi_head
from zoo.families.common.config import Config
from zoo.families.common.layer_lists import FULL, SLIDING, all_but_every
from zoo.families.common.layers import FixedLayers, Layers
from zoo.families.common.rope import RopeField
from zoo.families.common.rope_by_window import kind_of_layer
from zoo.families.common.template import Data, Field, FieldContext, Template, UnfitError
from zoo.families.common.tensors import Rule, Tensors, affine, fused, modules
from zoo.families.common.windowed_layers import Windows

_THETAS = {FULL: ("global_rope_theta", 160000.0), SLIDING: ("local_rope_theta", 10000.0)}
_WHOLE = "heads are rotated whole"


class _ModernBertRope(RopeField):
    """The position of the layers without a window, written together with the windowed layers' position."""

    def read(self, config: Config) -> Data:
        return self.read_kind(FULL, config)

    def read_kind(self, kind: str, config: Config) -> Data:
        """The position of one kind of layer."""
        name, default = _THETAS[kind]
        theta = config.float(name, default=default)
        both = config.part("rope_parameters")
        config.pass_over("rope_theta")
        if both is None:
            return self.read_parameters(*kind_of_layer(config, config.part("rope_scaling")), theta)
        config.must("rope_scaling", None, "rope_parameters hold it")
        parts = {layer_kind: both.part(layer_kind) for layer_kind in _THETAS}
        both.finish()
        return self.read_parameters(*kind_of_layer(config, parts[kind]), theta)

    def write(self, value: PositionKind, context: FieldContext) -> Data:
        """Return both positions in the form for old readers, and in full where they hold more than their base."""
        fields: Data = {}
        parameters: Data = {}
        for block in reversed(context.stack.layer_blocks()):
            windowed = block.sliding_window is not None
            inner = FieldContext(context.model, context.stack, block, context.key)
            kind = SLIDING if windowed else FULL
            written = super().write(inner.position, inner)
            if "partial_rotary_factor" in written:
                raise UnfitError(f"position.dimensions: {_WHOLE}")
            fields[_THETAS[kind][0]] = written["rope_theta"]
            parameters[kind] = {"rope_theta": written["rope_theta"], **(written["rope_scaling"] or {})}
        scaled = any(len(entry) > 1 for entry in parameters.values())
        return {**fields, **({"rope_parameters": parameters} if scaled else {})}


_FIRST = FixedLayers(
    "first",
    {"attention_norm": {"kind": "none"}},
    lambda layer, depth: layer == 0,
    lambda block: isinstance(block.attention_norm, NoNorm),
    "a norm before the first attention, or none before a later one",
)
"""The first layer, whose attention has no norm before it."""


def _interval(where: Sequence[bool]) -> Data:
    """The interval of the layers without a window, for old readers, if they are equally far apart."""
    fitting = (
        every
        for every in range(1, len(where) + 1)
        if all(local == bool(layer % every) for layer, local in enumerate(where))
    )
    every = next(fitting, None)
    return {} if every is None else {"global_attn_every_n_layers": every}


_BY_NUMBER = all_but_every(f.Positive("global_attn_every_n_layers", default=3), first=0)


_D_MODEL = f.Int("hidden_size", default=768)
_HEADS = f.Int("num_attention_heads", default=12)
_CONTEXT = f.ContextLength("max_position_embeddings", default=8192, unlimited=8192)
_POSITIONS = _ModernBertRope(per_head(_D_MODEL, _HEADS), _CONTEXT, whole=_WHOLE)
NORM = {
    "kind": "layer_norm",
    "eps": f.Float("norm_eps", default=1e-5),
    "bias": f.Bool("norm_bias", default=False),
}


def modernbert_body(architecture: str, window: Field, **constants: int | None) -> dict[str, Template]:
    """The template of an encoder or a decoder; ``window`` is the field of its windows, ``constants`` are constant fields."""
    layers = Layers(
        f.Depth("num_hidden_layers", default=22),
        {
            "kind": "pre_norm",
            "norm": NORM,
            "attention": multi_head(
                _HEADS,
                dropout=f.Float("attention_dropout", default=0.0),
                bias=f.Bias("attention_bias", default=False),
            ),
            "feed_forward": gated(
                1152,
                f.Activation("hidden_activation", "gelu"),
                bias=f.Bool("mlp_bias", default=False),
                dropout=f.Float("mlp_dropout", default=0.0),
            ),
        },
        (
            _FIRST,
            Windows(
                "local",
                window,
                _BY_NUMBER,
                written=_interval,
                position=f.Derived(lambda config: _POSITIONS.read_kind(SLIDING, config)),
            ),
        ),
    )
    return {
        "architecture": architecture,
        "*": f.Stated(**constants),
        "vocab_size": f.Int("vocab_size", default=50368),
        "d_model": _D_MODEL,
        "context_length": _CONTEXT,
        "position": _POSITIONS,
        "embedding": {"norm": NORM, "dropout": f.Float("embedding_dropout", default=0.0)},
        architecture: layers,
        "initialization": f.normal(depth_scaled=True),
    }


TRANSFORM = {
    "activation": f.Activation("classifier_activation", "gelu"),
    "dense_bias": f.Bool("classifier_bias", default=False),
    "norm": NORM,
}
"""The dense layer, activation and norm before every classifier."""

ANSWERS = {**TRANSFORM, "dropout": f.Float("classifier_dropout", default=0.0)}


def modernbert_tensors(
    name: str, stack: str, attention: tuple[Rule, ...], heads: dict[str, tuple[Rule, ...]], *outside: str
) -> Tensors:
    """The tensors of an encoder or a decoder: ``attention`` are the rules of its queries, keys and values.

    ``heads`` are those of its heads, whose names begin with one of ``outside``.
    """
    stored, block = "layers.{layer}.", f"{stack}.blocks.{{layer}}."
    layer = {
        "attn_norm": "attention_norm",
        "attn.Wo": "attention.output",
        "mlp_norm": "feed_forward_norm",
        "mlp.Wo": "feed_forward.down",
    }
    return Tensors(
        name,
        (
            *modules({"tok_embeddings": "token", "norm": "norm"}, "embeddings.", "embedding."),
            *modules(layer, stored, block),
            *attention,
            *fused(f"{stored}mlp.Wi", (f"{block}feed_forward.gate", f"{block}feed_forward.up")),
            *affine("final_norm", f"{stack}.final_norm"),
        ),
        prefix="model.",
        outside=outside,
        heads=heads,
        optional=tuple(f"{prefix}*" for prefix in outside),
        unused=("rotary_emb.*", "layers.*.attn.rotary_emb.*"),
    )


def transform_tensors(stored: str) -> tuple[Rule, ...]:
    """The dense layer and the norm before a classifier."""
    return modules({f"{stored}.dense": "head.dense", f"{stored}.norm": "head.norm"})
