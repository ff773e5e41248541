"""Zamba (Zyphra, 2024): ``ZambaConfig``, ``ZambaModel`` and its head: Mamba layers, some beside a transformer that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from specs.kinds.mamba import Mamba
from specs.model.model import Model
from zoo.families.common import fields as f
from zoo.families.common.blocks import gated
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.layer_lists import LINEAR, read_kinds
from zoo.families.common.layers import Layers
from zoo.families.common.llama_like import BLOCK, LAYER, LlamaFields, layer_modules, llama_tensors
from zoo.families.common.mamba import TIME_STEPS
from zoo.families.common.side_transformers import HYBRID, SideTransformers, places, shared_rules
from zoo.families.common.tensors import Rule, affine, same
from zoo.families.common.transforms import SAME, Depthwise, Shape, Transform, Transposed, Unsqueezed
from zoo.families.hybrids.jamba import mixer

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class ByHead:
    """Rows of all heads, (H K) ..., stored as H K ... (Zamba)."""

    heads: int
    by_rows: ClassVar[bool] = False

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        rows, *rest = shapes[0]
        return (self.heads, rows // self.heads, *rest)

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        return (stored.flatten(0, 1),)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0].unflatten(0, (self.heads, -1))


@dataclass(frozen=True)
class Alternating:
    """The two halves of a parameter's rows, stored in turn: the first row of each, then the second (Zamba)."""

    by_rows: ClassVar[bool] = True

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        return shapes[0]

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        return (stored.unflatten(0, (-1, 2)).transpose(0, 1).flatten(0, 1),)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0].unflatten(0, (2, -1)).transpose(0, 1).flatten(0, 1)


_FIELDS = LlamaFields(
    vocab_size=32000, hidden_size=3712, layers=76, heads=16, context=4096, eps=1e-5,
)  # fmt: skip
_EXPAND = f.Int("mamba_expand", default=2)


def _dividing(heads: int, config: Config) -> int:
    """Refuse heads of a mixer that do not divide its width."""
    width = _EXPAND.read(config) * _FIELDS.d_model.read(config)
    if heads < 1 or width % heads:
        config.refuse("n_mamba_heads", f"must divide the width of the mixer, which is {width}")
    return heads


def _kinds(config: Config) -> list[str]:
    depth = _FIELDS.depth.read(config)
    every = config.int("attn_layer_period", default=6)
    first = config.int("attn_layer_offset", default=4)
    kinds = read_kinds(config, "layers_block_type", depth, (LINEAR, HYBRID))
    if kinds is not None:
        return kinds
    if every < 1:
        config.refuse("attn_layer_period", "must be at least 1")
    if depth < 3:
        config.refuse("layers_block_type", "must be a list: without one there are at least 3 layers")
    return [LINEAR, LINEAR, HYBRID, *(HYBRID if i % every == first else LINEAR for i in range(depth - 3))]


_SIDES = SideTransformers(_FIELDS.d_model, heads=16, kinds=_kinds, least=2)
_MIXER = mixer(
    _FIELDS.d_model,
    f.Activation("hidden_mamba_act", "silu"),
    heads=f.Computed(f.Int("n_mamba_heads", default=2), _dividing),
)
_HYBRID = {
    "kind": "side_transformer",
    "attention": _SIDES.attention(),
    "feed_forward": gated(14848, "gelu", bias=False),
    "sharing": {"sets": 1},
}


def _heads(spec: Model) -> int:
    mixers = (block.mixer for block in spec.decoder.layer_blocks()) if spec.decoder else ()
    return next((mamba.heads for mamba in mixers if isinstance(mamba, Mamba)), 1)


def _by_head(spec: Model) -> Transform:
    return ByHead(_heads(spec))


def _matrices(spec: Model) -> Transform:
    return Unsqueezed() if _heads(spec) == 1 else Transposed()


def _biases(spec: Model) -> Transform:
    return Unsqueezed() if _heads(spec) == 1 else SAME


def _mixer(stored: str) -> tuple[Rule, ...]:
    theirs, ours = f"{LAYER}{stored}mamba", f"{BLOCK}mixer"
    return (
        *(replace(rule, transform=Alternating()) for rule in affine(f"{theirs}.in_proj", f"{ours}.input")),
        Rule(f"{theirs}.conv1d.weight", (f"{ours}.convolution.weight",), Depthwise()),
        same(f"{theirs}.conv1d.bias", f"{ours}.convolution.bias"),
        Rule(f"{theirs}.x_proj_weight", (f"{ours}.selection.weight",), _matrices),
        Rule(f"{theirs}.dt_proj_weight", (f"{ours}.step.weight",), _matrices),
        Rule(f"{theirs}.dt_proj_bias", (f"{ours}.step.bias",), _biases),
        Rule(f"{theirs}.A_log", (f"{ours}.rate_log",), _by_head),
        Rule(f"{theirs}.D", (f"{ours}.skip",), _by_head),
        *affine(f"{theirs}.out_proj", f"{ours}.output"),
        same(f"{LAYER}{stored}input_layernorm.weight", f"{BLOCK}mixer_norm.weight"),
    )


_SHARED = "layers.{owner}.shared_transf."
_TENSORS = llama_tensors(
    "zamba",
    *_mixer(""),
    *(replace(rule, beside=f"{BLOCK}side.weight") for rule in _mixer("mamba_decoder.")),
    *layer_modules({"linear": "side"}),
    *shared_rules(_SHARED),
    *(
        same(f"{_SHARED}feed_forward.{name}_proj.weight", f"{BLOCK}feed_forward.{name}.weight")
        for name in ("gate", "up")
    ),
    without=("self_attn.", "mlp.", "layernorm"),
    final_norm="final_layernorm",
    places=places,
)

FAMILIES = (
    Family(
        "zamba",
        _TENSORS,
        {
            "architecture": "decoder",
            "vocab_size": _FIELDS.vocab_size,
            "d_model": _FIELDS.d_model,
            "context_length": _FIELDS.context,
            "decoder": Layers(
                _FIELDS.depth,
                {
                    "kind": "pre_norm",
                    "norm": _FIELDS.norm,
                    "attention": None,
                    "mixer": _MIXER,
                    "feed_forward": None,
                },
                (_SIDES.layers(_HYBRID),),
            ),
            "initialization": f.normal(),
        },
        {"ZambaForCausalLM": language_modeling(tied=True, bias=False), "ZambaModel": BODY},
        fixed={
            "tie_word_embeddings": (True, "otherwise the reference shares no transformer either"),
            **_SIDES.fixed(),
        },
        ignored=(
            "num_logits_to_keep", "rope_theta", "sliding_window", "use_associative_scan", "use_mamba_kernels", *TIME_STEPS,
        ),
    ),
)  # fmt: skip
