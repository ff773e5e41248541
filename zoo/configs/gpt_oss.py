"""GPT-OSS (OpenAI, 2025): ``GptOssConfig``."""

from __future__ import annotations

from specs.model import Model
from zoo.configs.config import Config
from zoo.configs.decoders import attention_of, only_block
from zoo.configs.family import ConfigFamily, Data
from zoo.configs.heads import decoder_classes
from zoo.configs.layers import laid_over, layered
from zoo.configs.llamas import FULL, SLIDING, Defaults, read_layer_types, read_llama, windows_of, write_llama
from zoo.configs.mixtures import expert_of, mixture_of, training_alone

_DEFAULTS = Defaults(
    vocab_size=201088, hidden_size=2880, intermediate_size=2880, layers=36, heads=64, kv_heads=8, head_dim=64,
    context=131072, theta=150000.0, eps=1e-5,
)  # fmt: skip
_YARN = {
    "rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
    "original_max_position_embeddings": 4096,
}  # fmt: skip
"""The rotation of a config that says none."""


def _read(config: Config, class_name: str) -> Data:
    training_alone(config)
    config.ignore(
        "initial_context_length", "experts_per_token"
    )  # of the first configs, and said again elsewhere
    config.must("swiglu_alpha", 1.702, "it is that of quick_gelu")
    config.must("hidden_act", "silu", "the experts are gated by x * sigmoid(1.702 x), whatever it says")
    says_none = not config.has("rope_scaling") and not config.has("rope_parameters")
    attention = {"bias": config.bool("attention_bias", default=True), "sinks": True}
    data = read_llama(
        config,
        _DEFAULTS,
        attention=attention,
        rope={"parameters": Config(_YARN, config.where)} if says_none else {},
    )
    block = data["decoder"]["block"]
    mixture = {
        "kind": "mixture",
        "experts": config.int("num_local_experts", "num_experts", default=128),
        "top_k": config.int("num_experts_per_tok", default=4),
        "router": {"bias": True},
        "expert": {
            **block["feed_forward"],
            "activation": "quick_gelu",
            "bias": True,
            "limit": config.float("swiglu_limit", default=7.0),
            "up_offset": 1.0,
        },
    }
    layers = data["decoder"]["layers"]
    types = read_layer_types(config, [FULL if layer % 2 else SLIDING for layer in range(layers)])
    window = config.int("sliding_window", default=None if config.null("sliding_window") else 128)
    if window is None and SLIDING in types:
        config.refuse("sliding_window", f"must be a number: there are layers of {SLIDING}")
    decoder = layered(
        laid_over(block, {"feed_forward": mixture}),
        {"local": {"attention": {"window": window}}},
        ["local" if kind == SLIDING else None for kind in types],
    )
    return {**data, "decoder": {**data["decoder"], **decoder}}


def _write(model: Model) -> Data:
    mixture, windows = mixture_of(model), windows_of(model)
    expert = expert_of(mixture)
    fields = write_llama(model, expert)
    return {
        **fields,
        "rope_scaling": fields["rope_scaling"] or {"rope_type": "default"},
        "hidden_act": "silu",
        "attention_bias": attention_of(only_block(model)).bias.query,
        "sliding_window": next((each for each in windows if each is not None), 128),
        "layer_types": [FULL if each is None else SLIDING for each in windows],
        "num_local_experts": mixture.experts,
        "num_experts_per_tok": mixture.top_k,
        "swiglu_limit": expert.limit,
    }


FAMILIES = (
    ConfigFamily(
        "gpt_oss", _read, _write, decoder_classes("GptOss", tied=False, without=("ForQuestionAnswering",))
    ),
)
