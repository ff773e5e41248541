"""RWKV-7 (Peng et al., 2025) as flash-linear-attention publishes it: ``RWKV7Config``, ``RWKV7Model`` and its head.

Each of its layers is two of ours: time mixing, then channel mixing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from specs.kinds.rwkv import RWKV7, RWKVChannelMix
from specs.model.model import Model
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import BODY
from zoo.families.common.layers import FixedLayers, Layers
from zoo.families.common.llama_like import BLOCK
from zoo.families.common.template import Data, Field, FieldContext, UnfitError
from zoo.families.common.tensors import Rule, Tensors, affine, modules, same, weights
from zoo.families.common.transforms import Shape

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class _Along:
    """A vector per channel, stored as 1 1 D."""

    by_rows: ClassVar[bool] = False

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        return (1, 1, *shapes[0])

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        return (stored[0, 0],)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0][None, None]


@dataclass(frozen=True)
class _Flattened:
    """A vector per head, H K, stored as H K numbers in a row."""

    by_rows: ClassVar[bool] = False

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        heads, width = shapes[0]
        return (heads * width,)

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        return (stored.unflatten(0, shapes[0]),)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0].flatten()


_D_MODEL = f.Int("hidden_size", default=2048)
_EPS = f.Float("norm_eps", default=1e-5)
_NORM = {"kind": "layer_norm", "eps": _EPS, "bias": f.Bool("norm_bias", default=True)}


def _pairs(layers: int) -> int:
    if layers % 2:
        raise UnfitError(f"{layers} layers: it has pairs of them")
    return layers // 2


_DEPTH = f.Mapped(f.Depth("num_hidden_layers", default=24), lambda pairs: 2 * pairs, _pairs)


class _HeadsOfModel(Field):
    """Heads that share the width of the model, and the norm of their outputs, whose epsilon grows with their width."""

    component = RWKV7

    def read(self, config: Config) -> Data:
        d_model, head_dim = _D_MODEL.read(config), config.data.get("head_dim", 64)
        if head_dim is None:
            config.ignore("head_dim")
            heads = config.int("num_heads", default=0)
            if heads < 1 or d_model % heads:
                config.refuse("num_heads", f"must divide hidden_size, which is {d_model}")
            width = d_model // heads
        else:
            config.ignore("num_heads")  # which follow from the width
            width = config.int("head_dim", default=64)
            if width < 1 or d_model % width:
                config.refuse("head_dim", f"must divide hidden_size, which is {d_model}")
        return {"heads": d_model // width, "head_dim": width, "norm_eps": width * _EPS.read(config)}

    def write(self, value: RWKV7, context: FieldContext) -> Data:
        if value.width != context.model.d_model:
            raise UnfitError(f"heads of width {value.width} together: it has hidden_size")
        return {"head_dim": value.head_dim, "num_heads": value.heads}


def _usual_width(config: Config) -> int:
    """The default width of channel mixing: a multiple of the model's width, rounded up to a multiple of 32."""
    hidden = int(_D_MODEL.read(config) * config.float("hidden_ratio", default=4.0))
    return -(-hidden // 32) * 32


_LATER = FixedLayers(
    "later",
    {"mixer": {"value_rank": f.Int("v_low_rank_dim", default=16)}},
    lambda layer, depth: layer > 0 and layer % 2 == 0,
    lambda block: isinstance(block.mixer, RWKV7) and block.mixer.value_rank is not None,
    "values of their own in layers after the first",
)
"""The layers of time mixing after the first, which mix in the first layer's values."""

_CHANNELS_MIXED = FixedLayers(
    "channels",
    {
        "mixer": {
            "kind": "rwkv_channel_mix",
            "hidden": f.Int("intermediate_size", default=f.Derived(_usual_width)),
            "activation": "relu2",
        }
    },
    lambda layer, depth: layer % 2 == 1,
    lambda block: isinstance(block.mixer, RWKVChannelMix),
    "time and channel mixing that do not take turns",
)
"""Every second layer, which mixes channels."""


def _value_widths(config: Config) -> list[int]:
    return [_D_MODEL.read(config)] * (_DEPTH.read(config) // 2)


def _places(spec: Model) -> Sequence[dict[str, int]]:
    """The layer that has each of ours."""
    depth = spec.decoder.depth if spec.decoder is not None else 0
    return [{"pair": layer // 2} for layer in range(depth)]


_PAIR = "layers.{pair}."
_TIME, _CHANNELS = f"{_PAIR}attn.", f"{_PAIR}ffn."
_OURS = f"{BLOCK}mixer."
_MIXED = {"r": "query", "w": "decay", "k": "key", "v": "value", "a": "update", "g": "gate"}


def _low_rank(stored: str, ours: str) -> tuple[Rule, ...]:
    theirs = f"{_TIME}{stored}_lora.lora"
    return (
        same(f"{theirs}.0.weight", f"{_OURS}{ours}_in.weight"),
        *affine(f"{theirs}.2", f"{_OURS}{ours}_out"),
    )


_TENSORS = Tensors(
    "rwkv7",
    (
        *modules({"embeddings": "embedding.token", "norm": "decoder.final_norm"}),
        *modules({"layers.0.pre_norm": "embedding.norm"}),
        *(
            replace(rule, beside=f"{_OURS}{only}.weight")
            for theirs, only in (("attn_norm", "query"), ("ffn_norm", "up"))
            for rule in affine(f"{_PAIR}{theirs}", f"{BLOCK}mixer_norm")
        ),
        *(
            Rule(f"{_TIME}x_{letter}", (f"{_OURS}{name}_mix",), _Along())
            for letter, name in _MIXED.items()
        ),
        *weights({f"{name[0]}_proj": name for name in ("key", "value", "output")}, _TIME, _OURS),
        same(f"{_TIME}r_proj.weight", f"{_OURS}query.weight"),
        *(
            rule
            for letter, name in {"w": "decay", "a": "update", "v": "share", "g": "gate"}.items()
            for rule in _low_rank(letter, name)
        ),
        Rule(f"{_TIME}k_k", (f"{_OURS}removal_scale",), _Flattened()),
        Rule(f"{_TIME}k_a", (f"{_OURS}update_scale",), _Flattened()),
        same(f"{_TIME}r_k", f"{_OURS}bonus"),
        *(replace(rule, transform=_Flattened()) for rule in affine(f"{_TIME}g_norm", f"{_OURS}norm")),
        same(f"{_CHANNELS}x_k", f"{_OURS}mix"),
        *weights({"key": "up", "value": "down"}, _CHANNELS, _OURS),
    ),
    prefix="model.",
    outside=("lm_head.",),
    heads={"language_modeling": affine("lm_head", "head.vocabulary")},
    optional=("lm_head.weight",),
    places=_places,
)  # fmt: skip

FAMILIES = (
    Family(
        "rwkv7",
        _TENSORS,
        {
            "architecture": "decoder",
            "vocab_size": f.Int("vocab_size", default=32000),
            "d_model": _D_MODEL,
            "context_length": f.ContextLength("max_position_embeddings", default=2048),
            "embedding": {"norm": f.When(f.Bool("norm_first", default=True), _NORM)},
            "decoder": Layers(
                _DEPTH,
                {
                    "kind": "pre_norm",
                    "norm": _NORM,
                    "attention": None,
                    "mixer": {
                        "kind": "rwkv7",
                        "*": _HeadsOfModel(),
                        "decay_rank": f.Int("decay_low_rank_dim", default=64),
                        "update_rank": f.Int("a_low_rank_dim", default=64),
                        "gate_rank": f.Int("gate_low_rank_dim", default=128),
                    },
                    "feed_forward": None,
                },
                (_CHANNELS_MIXED, _LATER),
            ),
            "initialization": f.normal(),
        },
        {
            "RWKV7ForCausalLM": HeadClass("language_modeling", {"tie_embeddings": False, "bias": False}),
            "RWKV7Model": BODY,
        },
        fixed={
            "hidden_act": ("sqrelu", "other activations of channel mixing are not supported"),
            "attn": (None, "layers with attention are not supported"),
            "tie_word_embeddings": (False, "the published models are not tied"),
            "value_dim": (f.Derived(_value_widths), "values wider than keys are not supported"),
        },
        ignored=("attn_mode", "fuse_norm", "fuse_cross_entropy", "fuse_linear_cross_entropy", "use_l2warp"),
    ),
)
