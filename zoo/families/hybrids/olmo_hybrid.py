"""OLMo Hybrid (OLMo team, 2026): ``OlmoHybridConfig``, ``OlmoHybridModel`` and its head: OLMo 3's attention in every fourth layer, Gated
DeltaNet behind a norm in the others."""

from __future__ import annotations

from dataclasses import replace

from specs.kinds.delta import GatedDeltaNet
from specs.kinds.position import NoPosition, PositionKind
from specs.model.model import Model
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.hybrid import MIXERS, LayersOf
from zoo.families.common.layer_lists import FULL, LINEAR, read_kinds
from zoo.families.common.llama_like import BLOCK, LAYER, WHOLE_HEADS, LlamaFields, llama_tensors
from zoo.families.common.rope import RopeField, stated_parameters
from zoo.families.common.template import Data, FieldContext
from zoo.families.common.tensors import Rule, Tensors, same, weights
from zoo.families.common.transforms import SAME, Depthwise, Transform
from zoo.families.decoders.olmo2 import olmo2_body


class _Rope(RopeField):
    """Rotary positions, or none where the base is null, as in published configs."""

    def read(self, config: Config) -> Data:
        parameters = stated_parameters(config) or config
        if not parameters.null("rope_theta"):
            return super().read(config)
        config.ignore("rope_parameters", "rope_theta")
        return {"kind": "none"}

    def write(self, value: PositionKind, context: FieldContext) -> Data:
        if isinstance(value, NoPosition):
            return {"rope_parameters": {"rope_type": "default", "rope_theta": None}}
        return super().write(value, context)


def _kinds(config: Config, depth: int) -> list[str]:
    """The words for all layers: by default attention in every fourth, or in the last of fewer than four."""
    default = [FULL if layer % 4 == 3 else LINEAR for layer in range(depth)]
    if FULL not in default:
        default[-1:] = [FULL]
    return read_kinds(config, "layer_types", depth, MIXERS) or default


_FIELDS = LlamaFields(
    vocab_size=100352, hidden_size=3840, intermediate_size=11008, heads=30, context=65536
)  # fmt: skip
_HEADS = _FIELDS.heads.heads
_KEY_HEADS = f.Int("linear_num_key_heads", default=_HEADS)
_KEY_WIDTH = f.Int(
    "linear_key_head_dim",
    default=f.Derived(
        lambda config: int(0.75 * _FIELDS.d_model.read(config) / max(_KEY_HEADS.read(config), 1))
    ),
)
_DELTA = {
    "kind": "gated_delta_net",
    "heads": f.Int("linear_num_value_heads", default=_HEADS),
    "key_heads": _KEY_HEADS,
    "key_width": _KEY_WIDTH,
    "value_width": f.Int("linear_value_head_dim", default=f.times(2, _KEY_WIDTH)),
    "kernel_size": f.Int("linear_conv_kernel_dim", default=4),
    "activation": f.Activation("hidden_act", "silu"),
    "norm_eps": 1e-5,
    "negative_eigenvalues": f.Bool("linear_allow_neg_eigval", default=True),
}


def _rows(spec: Model) -> dict[str, int]:
    """The rows of queries, keys and values."""
    mixers = (block.mixer for block in spec.last_stack.layer_blocks())
    mixer = next(mixer for mixer in mixers if isinstance(mixer, GatedDeltaNet))
    keys = mixer.key_heads * mixer.key_width
    return {"q": keys, "k": keys, "v": mixer.heads * mixer.value_width}


def _joined(stored: str, ours: str, transform: Transform) -> Rule:
    return Rule(f"{_STORED}{{part}}_{stored}.weight", (f"{_OURS}{ours}.weight",), transform, sections=_rows)


_STORED, _OURS = f"{LAYER}linear_attn.", f"{BLOCK}mixer."
_MIXER = {"g_proj": "gate", "b_proj": "update", "a_proj": "decay", "o_norm": "norm", "o_proj": "output"}


def _tensors(convolution: Rule, before: str, between: str) -> Tensors:
    """The tensors with these names of a linear layer's norms; transformers gives the second to the norm after attention, too."""
    delta, attention = f"{BLOCK}mixer_norm.weight", f"{BLOCK}attention_norm.weight"
    return llama_tensors(
        "olmo_hybrid",
        _joined("proj", "input", SAME),
        convolution,
        same(f"{_STORED}A_log", f"{_OURS}rate_log"),
        same(f"{_STORED}dt_bias", f"{_OURS}step_bias"),
        *weights(_MIXER, _STORED, _OURS),
        same(f"{LAYER}{before}.weight", delta),
        same(f"{LAYER}{between}.weight", f"{BLOCK}feed_forward_norm.weight", beside=delta),
        same(f"{LAYER}post_attention_layernorm.weight", attention, also=(f"{LAYER}{between}.weight",)),
        same(f"{LAYER}post_feedforward_layernorm.weight", f"{BLOCK}feed_forward_norm.weight", beside=attention),
        without=("layernorm",),
    )  # fmt: skip


_KERNEL = Rule(f"{_STORED}conv1d.weight", (f"{_OURS}convolution.weight",), Depthwise())
_IN_MEMORY = _tensors(_KERNEL, "input_layernorm", "post_attention_layernorm")
_TENSORS = _tensors(
    _joined("conv1d", "convolution", Depthwise()), "attention_layer_norm", "feedforward_layer_norm"
)

FAMILIES = (
    Family(
        "olmo_hybrid",
        replace(_TENSORS, other=_IN_MEMORY),
        olmo2_body(
            _FIELDS,
            position=_Rope(_FIELDS.heads.width, _FIELDS.context, whole=WHOLE_HEADS),
            varies=(LayersOf(LINEAR, {"kind": "pre_norm", "attention": None, "mixer": _DELTA}, _kinds),),
        ),
        decoder_classes(
            "OlmoHybrid",
            without=("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"),
        ),
        ignored=(
            "linear_a_log_min",
            "linear_a_log_max",
            "linear_dt_min",
            "linear_dt_max",
            "linear_dt_init_floor",
        ),
    ),
)
