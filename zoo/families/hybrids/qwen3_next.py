"""Qwen3-Next and Qwen3.5 (Qwen team, 2025 and 2026): ``Qwen3NextConfig``, ``Qwen3_5TextConfig``, ``Qwen3_5MoeTextConfig`` and their
models: gated attention in every fourth layer, Gated DeltaNet in the others."""

from __future__ import annotations

from collections.abc import Callable

from specs.kinds.delta import GatedDeltaNet
from specs.model.model import Model
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import BODY, LAST_TOKEN, decoder_classes, language_modeling
from zoo.families.common.hybrid import MIXERS, LayersOf
from zoo.families.common.layer_lists import FULL, LINEAR, all_but_every, read_kinds
from zoo.families.common.layers import LayerVariation
from zoo.families.common.llama_like import BLOCK, LAYER, LlamaFields, layer_modules, llama_tensors
from zoo.families.common.mixtures import EXPERTS, TRAINING, shared
from zoo.families.common.next_token import COUNTS, next_token_class, with_next_token
from zoo.families.common.qwen import SparseStep, qwen_mixture
from zoo.families.common.rope import RopeParameters
from zoo.families.common.template import Template
from zoo.families.common.tensors import Rule, Tensors, fused, same, weights
from zoo.families.common.transforms import Depthwise, Grouped, GroupedByKey, Transform


def _kinds(config: Config, depth: int) -> list[str]:
    """The words for all layers: by default attention in every fourth."""
    linear = all_but_every(f.Positive("full_attention_interval", default=4))(config, depth)
    default = [LINEAR if holds else FULL for holds in linear]
    return read_kinds(config, "layer_types", depth, MIXERS) or default


def _body(fields: LlamaFields, *varies: LayerVariation, feed_forward: Template = None) -> dict[str, Template]:
    norm = {**fields.norm, "unit_offset": True}
    delta = {
        "kind": "gated_delta_net",
        "heads": f.Int("linear_num_value_heads", default=32),
        "key_heads": f.Int("linear_num_key_heads", default=16),
        "key_width": f.Int("linear_key_head_dim", default=128),
        "value_width": f.Int("linear_value_head_dim", default=128),
        "kernel_size": f.Int("linear_conv_kernel_dim", default=4),
        "activation": f.Activation("hidden_act", "silu"),
        "norm_eps": fields.eps,
    }
    return fields.body(
        attention={
            "bias": f.Bias("attention_bias", default=False),
            "output_gate": {"bias": f.Bool("attention_bias", default=False)},
            "qk_norm": {"norm": norm, "over": "head"},
        },
        norm=norm,
        feed_forward=feed_forward,
        position=fields.rope(
            fraction=0.25, parameters=RopeParameters(ignored=("mrope_section", "mrope_interleaved"))
        ),
        varies=(LayersOf(LINEAR, {"attention": None, "mixer": delta}, _kinds), *varies),
    )


def _heads(spec: Model) -> Transform:
    """Queries and their gates, head by head."""
    attentions = (block.attention for block in spec.last_stack.layer_blocks())
    return Grouped(next(attention.heads for attention in attentions if attention is not None))  # type: ignore[attr-defined]


def _key_heads(transform: Callable[[int], Transform]) -> Callable[[Model], Transform]:
    """A transform by the number of key heads."""

    def of_spec(spec: Model) -> Transform:
        mixers = (block.mixer for block in spec.last_stack.layer_blocks())
        return transform(next(mixer.key_heads for mixer in mixers if isinstance(mixer, GatedDeltaNet)))

    return of_spec


_STORED, _OURS = f"{LAYER}linear_attn.", f"{BLOCK}mixer."


_MODULE = {
    "mtp.fc": "embedding.projection",
    "mtp.pre_fc_norm_embedding": "embedding.norm",
    "mtp.pre_fc_norm_hidden": "embedding.hidden_norm",
    "mtp.norm": "decoder.final_norm",
}
"""The tensors of the module that predicts a further token, outside of its layer."""


def _tensors(name: str, *rules: Rule) -> Tensors:
    table = llama_tensors(
        name,
        *fused(f"{LAYER}self_attn.q_proj", (f"{BLOCK}attention.query", f"{BLOCK}attention.gate"), _heads, _heads),
        *layer_modules({"input_layernorm": "mixer_norm"}),
        Rule(f"{_STORED}conv1d.weight", (f"{_OURS}convolution.weight",), Depthwise()),
        same(f"{_STORED}A_log", f"{_OURS}rate_log"),
        same(f"{_STORED}dt_bias", f"{_OURS}step_bias"),
        *weights({"norm": "norm", "out_proj": "output"}, _STORED, _OURS),
        *rules,
        without=("q_proj",),
        unused=("mtp.*",),
        head_prefixes={"question_answering": "transformer."},
    )  # fmt: skip
    return with_next_token(table, "mtp.", _MODULE)


def _module(body: dict[str, Template], fields: LlamaFields, count: str = COUNTS[0]) -> HeadClass:
    """The class of the module that predicts a further token."""
    norm = {**fields.norm, "unit_offset": True}
    return next_token_class(body, norm, language_modeling(tied=False, bias=False), count)


_SEPARATE = weights(
    {"in_proj_qkv": "input", "in_proj_z": "gate", "in_proj_b": "update", "in_proj_a": "decay"}, _STORED, _OURS
)
"""The projections of Qwen3.5."""
_JOINED = (
    Rule(f"{_STORED}in_proj_qkvz.weight", (f"{_OURS}input.weight", f"{_OURS}gate.weight"), _key_heads(GroupedByKey)),
    Rule(f"{_STORED}in_proj_ba.weight", (f"{_OURS}update.weight", f"{_OURS}decay.weight"), _key_heads(Grouped)),
)  # fmt: skip
"""The projections of Qwen3-Next."""
_SHARED = layer_modules({**shared("shared_expert"), "mlp.shared_expert_gate": "feed_forward.shared_gate"})

_NEXT = LlamaFields(
    vocab_size=151936, hidden_size=2048, intermediate_size=5632, layers=48, heads=16, kv_heads=2, head_dim=256,
    context=32768,
)  # fmt: skip
DENSE = LlamaFields(
    vocab_size=248320, hidden_size=4096, intermediate_size=12288, layers=32, heads=16, kv_heads=4, head_dim=256,
    context=32768,
)  # fmt: skip


SPARSE = LlamaFields(
    vocab_size=248320, hidden_size=2048, layers=40, heads=16, kv_heads=2, head_dim=256, context=32768
)  # fmt: skip
_FIXED: dict[str, tuple[Template, str]] = {
    "attn_output_gate": (True, "the reference has no attention without a gate"),
    "mlp_only_layers": ([], "the reference has feed-forwards of one kind in all layers"),
}
_UNREAD = ("mamba_ssm_dtype", "mtp_num_hidden_layers", "mtp_use_dedicated_embeddings")
"""Fields of Qwen3.5's configs that the reference does not read."""


def _shared_expert(fields: LlamaFields) -> Template:
    return fields.feed_forward(hidden=f.Int("shared_expert_intermediate_size", default=512))


_NEXT_BODY = _body(
    _NEXT,
    SparseStep(_NEXT.feed_forward()),
    feed_forward=qwen_mixture(
        _NEXT, 512, 10, 512, normalize=True, shared=_shared_expert(_NEXT), shared_gate=True
    ),
)
QWEN3_NEXT = Family(
    "qwen3_next",
    _tensors("qwen3_next", *_JOINED, *EXPERTS, *_SHARED),
    _NEXT_BODY,
    {**decoder_classes("Qwen3Next"), "Qwen3NextMTP": _module(_NEXT_BODY, _NEXT)},
    ignored=(*TRAINING, "use_sliding_window"),
)
_DENSE_BODY = _body(DENSE)
QWEN3_5 = Family(
    "qwen3_5_text",
    _tensors("qwen3_5_text", *_SEPARATE),
    _DENSE_BODY,
    {
        "Qwen3_5ForCausalLM": language_modeling(tied=False, bias=False),
        "Qwen3_5TextModel": BODY,
        "Qwen3_5TextForSequenceClassification": LAST_TOKEN,
        "Qwen3_5MTP": _module(_DENSE_BODY, DENSE, COUNTS[1]),
    },
    fixed=_FIXED,
    ignored=_UNREAD,
)
_SPARSE_BODY = _body(
    SPARSE,
    feed_forward=qwen_mixture(
        SPARSE,
        256,
        8,
        512,
        shared=_shared_expert(SPARSE),
        shared_gate=True,
        router={"normalize": True},
    ),
)
QWEN3_5_MOE = Family(
    "qwen3_5_moe_text",
    _tensors("qwen3_5_moe_text", *_SEPARATE, *EXPERTS, *_SHARED),
    _SPARSE_BODY,
    {
        "Qwen3_5MoeForCausalLM": language_modeling(tied=False, bias=False),
        "Qwen3_5MoeTextModel": BODY,
        "Qwen3_5MoeMTP": _module(_SPARSE_BODY, SPARSE, COUNTS[1]),
    },
    fixed=_FIXED,
    ignored=(*_UNREAD, *TRAINING),
)
FAMILIES = (QWEN3_NEXT, QWEN3_5, QWEN3_5_MOE)
