"""Gemma (Gemma team, 2024), Gemma 2 (2024) and the text models of Gemma 3 (2025): ``GemmaConfig``, ``Gemma2Config``, ``Gemma3TextConfig``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specs.activation import Activation
from specs.base import Component
from specs.model import Model
from specs.position import Rope
from zoo.configs.activations import ACTIVATIONS, read_activation, write_activation
from zoo.configs.config import Config
from zoo.configs.decoders import attention_of, gated_of, only_block, stack_of
from zoo.configs.family import ConfigFamily, Data, HeadClass
from zoo.configs.heads import BODY, decoder_classes
from zoo.configs.layers import layered
from zoo.configs.llamas import FULL, SLIDING, Defaults, read_layer_types, read_llama, windows_of, write_llama
from zoo.configs.rope import read_rope, write_rope

GEMMA_DEFAULTS = Defaults(
    vocab_size=256000, hidden_size=3072, intermediate_size=24576, layers=28, heads=16, kv_heads=16, head_dim=256,
    context=8192,
)  # fmt: skip
GEMMA2_DEFAULTS = Defaults(
    vocab_size=256000, hidden_size=2304, intermediate_size=9216, layers=26, heads=8, kv_heads=4, head_dim=256,
    context=8192,
)  # fmt: skip
GEMMA3_DEFAULTS = Defaults(
    vocab_size=262208, hidden_size=2304, intermediate_size=9216, layers=26, heads=8, kv_heads=4, head_dim=256,
    context=131072, theta=1e6,
)  # fmt: skip
LOCAL_THETA = 10000.0


def _read_body(
    config: Config,
    defaults: Defaults,
    kind: str,
    activation: Activation,
    attention: Mapping[str, Any],
    rope: Mapping[str, Any] | None = None,
) -> Data:
    """What all three have: norms around 0, a scaled embedding, a gated feed-forward."""
    config.must("use_bidirectional_attention", False, "a token sees none after it")
    config.ignore("cache_implementation", "sliding_window_size")  # of which the second was said twice
    norm = {
        "kind": "rms_norm",
        "eps": config.float("rms_norm_eps", default=defaults.eps),
        "unit_offset": True,
    }
    data = read_llama(
        config,
        defaults,
        attention={"bias": config.bool("attention_bias", default=False), **attention},
        feed_forward={"activation": activation},
        block={"kind": kind, "norm": norm},
        rope=rope,
    )
    return {**data, "embedding": {"scale": "sqrt_d_model"}}


def _write_body(model: Model) -> Data:
    return {**write_llama(model), "attention_bias": attention_of(only_block(model)).bias.query}


def _read_gemma(config: Config, class_name: str) -> Data:
    """The first configs say gelu and mean its tanh approximation."""
    tanh = {**ACTIVATIONS, "gelu": "gelu_tanh"}
    activation = config.choice("hidden_act", tanh, "gelu_pytorch_tanh")
    if config.choice("hidden_activation", tanh, config.text("hidden_act", default="gelu")) != activation:
        config.refuse("hidden_activation", "must be as hidden_act: of the two, readers take one or the other")
    return _read_body(config, GEMMA_DEFAULTS, "pre_norm", activation, {})


def _write_gemma(model: Model) -> Data:
    return {
        **_write_body(model),
        **dict.fromkeys(("hidden_act", "hidden_activation"), _word(model, "gelu_python")),
    }


def _word(model: Model, gelu: str = "gelu") -> str:
    """The activation in the words of the family, which has ``gelu`` for the exact one."""
    activation = gated_of(only_block(model)).activation
    return {"gelu": gelu, "gelu_tanh": "gelu_pytorch_tanh"}.get(activation) or write_activation(activation)


def _scores(config: Config, *, softcap: float | None) -> Data:
    """What happens to the scores of an attention from Gemma 2 on."""
    field = "attn_logit_softcapping"
    return {
        "scale": config.int("query_pre_attn_scalar", default=256) ** -0.5,
        "softcap": config.float(field, default=None if config.null(field) else softcap),
    }


def _read_layers(config: Config, data: Data, every: int, local: Data) -> Data:
    """Layers with a window, of which each ``every``-th has none; ``local`` is what else sets those with a window apart."""
    decoder = data["decoder"]
    layers = decoder["layers"]
    types = read_layer_types(config, [SLIDING if (layer + 1) % every else FULL for layer in range(layers)])
    window = config.int("sliding_window", default=None if config.null("sliding_window") else 4096)
    if window is None and SLIDING in types:
        config.refuse("sliding_window", f"must be a number: there are layers of {SLIDING}")
    variants = {"local": {"attention": {"window": window, **local}}}
    names = ["local" if kind == SLIDING else None for kind in types]
    return {**data, "decoder": {**decoder, **layered(decoder["block"], variants, names)}}


def _write_layers(model: Model) -> Data:
    windows = windows_of(model)
    attention = attention_of(only_block(model))
    scale = attention.scale or attention.head_width(model.d_model) ** -0.5
    return {
        **_write_body(model),
        "hidden_activation": _word(model),
        "query_pre_attn_scalar": round(scale**-2),
        "attn_logit_softcapping": attention.softcap,
        "sliding_window": next((each for each in windows if each is not None), 4096),
        "layer_types": [FULL if each is None else SLIDING for each in windows],
    }


def _read_gemma2(config: Config, class_name: str) -> Data:
    activation = read_activation(config, "hidden_activation", "gelu_pytorch_tanh")
    config.ignore(_CAP)  # which the head reads
    data = _read_body(config, GEMMA2_DEFAULTS, "sandwich", activation, _scores(config, softcap=50.0))
    return _read_layers(config, data, 2, {})


def _read_gemma3(config: Config, class_name: str) -> Data:
    activation = read_activation(config, "hidden_activation", "gelu_pytorch_tanh")
    config.must("attn_logit_softcapping", None, "the reference has the field and no such cap")
    config.ignore(_CAP)  # which the head reads
    eps = config.float("rms_norm_eps", default=GEMMA3_DEFAULTS.eps)
    norm = {"kind": "rms_norm", "eps": eps, "unit_offset": True}
    attention = {**_scores(config, softcap=None), "qk_norm": {"norm": norm, "over": "head"}}
    if config.has("rope_parameters") and config.has("rope_scaling"):
        config.refuse(
            "rope_scaling", "must not be given beside rope_parameters, which say it for each kind of layer"
        )
    parameters = config.part("rope_parameters") or Config({}, config.where)
    whole, local = parameters.part(FULL), parameters.part(SLIDING) or Config({}, config.where)
    parameters.finish()
    rope = {} if whole is None else {"parameters": whole}
    data = _read_body(config, GEMMA3_DEFAULTS, "sandwich", activation, attention, rope)
    theta = config.float("rope_local_base_freq", default=LOCAL_THETA)
    position = read_rope(
        Config({}, config.where),
        width=config.int("head_dim", default=GEMMA3_DEFAULTS.head_dim),
        context=data["context_length"],
        parameters=Config({"rope_theta": theta, **local.data}, config.where, local.path),
    )
    every = config.int("sliding_window_pattern", "_sliding_window_pattern", default=6)
    if every < 1:
        config.refuse("sliding_window_pattern", "must be at least 1")
    return _read_layers(config, data, every, {"position": position})


def _write_gemma3(model: Model) -> Data:
    stack = stack_of(model)
    positions: dict[bool, Component] = {True: Rope(theta=LOCAL_THETA), False: Rope(theta=1e6)}
    for block in reversed(stack.layer_blocks()):
        attention = attention_of(block)
        positions[attention.window is not None] = attention.position or model.position_of(stack)
    width = attention_of(only_block(model)).head_width(model.d_model)
    whole, local = write_rope(positions[False], width=width), write_rope(positions[True], width=width)
    if local["rope_scaling"] is None:
        return {**_write_layers(model), **whole, "rope_local_base_freq": local["rope_theta"]}
    kinds = {kind: _parameters(rope) for kind, rope in ((FULL, whole), (SLIDING, local))}
    fields = {key: value for key, value in _write_layers(model).items() if key not in whole}
    return {**fields, "rope_parameters": kinds}


def _parameters(rope: Data) -> Data:
    """The fields of a rotary position in the spelling of ``rope_parameters``."""
    scaling = rope["rope_scaling"] or {"rope_type": "default"}
    return {"rope_theta": rope["rope_theta"], **scaling}


def _capped(tied: HeadClass, cap: float | None) -> HeadClass:
    """Scores of the next token that are bounded, by ``cap`` where a config does not say."""

    def read(config: Config) -> Data:
        softcap = config.float(_CAP, default=None if config.null(_CAP) else cap)
        return {**tied.read(config), "softcap": softcap}

    def write(head: Any) -> Data:
        return {**tied.write(head), _CAP: head.softcap}

    return HeadClass(tied.kind, read, write)


_CAP = "final_logit_softcapping"
_GEMMA = decoder_classes("Gemma", tied=True, without=("ForQuestionAnswering",))
_GEMMA2 = decoder_classes("Gemma2", tied=True, without=("ForQuestionAnswering",))
_GEMMA3 = {
    "Gemma3ForCausalLM": _capped(_GEMMA["GemmaForCausalLM"], None),
    "Gemma3TextModel": BODY,
    "Gemma3TextForSequenceClassification": _GEMMA["GemmaForSequenceClassification"],
}

FAMILIES = (
    ConfigFamily("gemma", _read_gemma, _write_gemma, _GEMMA),
    ConfigFamily(
        "gemma2",
        _read_gemma2,
        _write_layers,
        {**_GEMMA2, "Gemma2ForCausalLM": _capped(_GEMMA2["Gemma2ForCausalLM"], 30.0)},
    ),
    ConfigFamily("gemma3_text", _read_gemma3, _write_gemma3, _GEMMA3),
)
