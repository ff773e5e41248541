"""Qwen2-MoE (Qwen team, 2024) and Qwen3-MoE (Yang et al., 2025): ``Qwen2MoeConfig``, ``Qwen3MoeConfig``."""

from __future__ import annotations

from specs.model import Model
from zoo.configs.config import Config
from zoo.configs.decoders import attention_of, only_block
from zoo.configs.family import ConfigFamily, Data, UnfitError
from zoo.configs.heads import decoder_classes
from zoo.configs.layers import layered
from zoo.configs.llamas import (
    FULL,
    SLIDING,
    Defaults,
    read_layer_types,
    read_llama,
    rms_norm,
    windows_of,
    write_llama,
)
from zoo.configs.mixtures import (
    dense_of,
    expert_of,
    mixture_of,
    read_dense_layers,
    shared_width,
    training_alone,
    write_dense_layers,
)

_QWEN2 = Defaults(
    vocab_size=151936,
    hidden_size=2048,
    intermediate_size=5632,
    layers=24,
    heads=16,
    kv_heads=16,
    context=32768,
)
_QWEN3 = Defaults(
    vocab_size=151936,
    hidden_size=2048,
    intermediate_size=6144,
    layers=24,
    heads=32,
    kv_heads=4,
    context=32768,
)


def _mixture(config: Config, dense: Data, *, experts: int, top_k: int, hidden: int) -> Data:
    """The mixture whose experts are as the ordinary feed-forward, but narrower."""
    normalize = config.bool("norm_topk_prob", default=False)
    return {
        "kind": "mixture",
        "experts": config.int("num_experts", "num_local_experts", default=experts),
        "top_k": config.int("num_experts_per_tok", default=top_k),
        "expert": {**dense, "hidden": config.int("moe_intermediate_size", default=hidden)},
        "router": {"normalize": normalize},
    }


def _with_layers(config: Config, data: Data, mixture: Data, window: int | None, windowed: list[bool]) -> Data:
    """The spec whose layers have a mixture, but for the dense ones, and a window where ``windowed``."""
    block = data["decoder"]["block"]
    sizes = {"dense": {"feed_forward": block["feed_forward"]}, "windowed": {"attention": {"window": window}}}
    variants = {**sizes, "windowed_dense": {**sizes["windowed"], **sizes["dense"]}}
    dense = read_dense_layers(config, len(windowed))
    names = [_NAMES[pair] for pair in zip(windowed, dense, strict=True)]
    decoder = layered({**block, "feed_forward": mixture}, variants, names)
    return {**data, "decoder": {**data["decoder"], **decoder}}


_NAMES = {
    (False, False): None,
    (False, True): "dense",
    (True, False): "windowed",
    (True, True): "windowed_dense",
}
"""The block of a layer: whether it has a window, and whether its feed-forward is an ordinary one."""


def _write_mixture(model: Model) -> Data:
    mixture = mixture_of(model)
    return {
        **write_llama(model, dense_of(model)),
        **write_dense_layers(model),
        "num_experts": mixture.experts,
        "num_experts_per_tok": mixture.top_k,
        "moe_intermediate_size": expert_of(mixture).hidden,
        "norm_topk_prob": mixture.router.normalize,
    }


def _read_qwen2(config: Config, class_name: str) -> Data:
    training_alone(config)
    bias = config.bool("qkv_bias", default=True)
    projections = {"query": bias, "key": bias, "value": bias, "output": False}
    data = read_llama(config, _QWEN2, attention={"bias": projections})
    dense = data["decoder"]["block"]["feed_forward"]
    shared = {**dense, "hidden": config.int("shared_expert_intermediate_size", default=5632)}
    mixture = _mixture(config, dense, experts=60, top_k=4, hidden=1408)
    mixture |= {"shared": shared, "shared_gate": True}
    window, windowed = _read_windows(config, data["decoder"]["layers"])
    return _with_layers(config, data, mixture, window, windowed)


def _read_windows(config: Config, layers: int) -> tuple[int | None, list[bool]]:
    """The window, and which layers have it: every other one of the first max_window_layers."""
    window = config.int("sliding_window", default=None if config.null("sliding_window") else 4096)
    if not config.bool("use_sliding_window", default=False):
        window = None
    last = config.int("max_window_layers", default=28)
    default = [
        SLIDING if window is not None and layer % 2 == 0 and layer < last else FULL for layer in range(layers)
    ]
    types = read_layer_types(config, default)
    if window is None and SLIDING in types:
        config.refuse(
            "layer_types", f"has {SLIDING} without a window", "set use_sliding_window and sliding_window"
        )
    return window, [kind == SLIDING for kind in types]


def _write_qwen2(model: Model) -> Data:
    windows, shared = windows_of(model), shared_width(mixture_of(model))
    if shared is None:
        raise UnfitError("a mixture without shared: {kind: gated}")
    window = next((each for each in windows if each is not None), None)
    return {
        **_write_mixture(model),
        "shared_expert_intermediate_size": shared,
        "qkv_bias": attention_of(only_block(model)).bias.query,
        "use_sliding_window": window is not None,
        "sliding_window": window,
        "layer_types": [FULL if each is None else SLIDING for each in windows],
    }


def _read_qwen3(config: Config, class_name: str) -> Data:
    training_alone(config)
    config.ignore("max_window_layers")  # a leftover of Qwen2's, which the reference does not read
    window = config.int("sliding_window", default=None if config.null("sliding_window") else 4096)
    if not config.bool("use_sliding_window", default=False):
        window = None
    attention = {
        "bias": config.bool("attention_bias", default=False),
        "qk_norm": {"norm": rms_norm(config, _QWEN3), "over": "head"},
        "window": window,
    }
    data = read_llama(config, _QWEN3, attention=attention)
    mixture = _mixture(config, data["decoder"]["block"]["feed_forward"], experts=128, top_k=8, hidden=768)
    return _with_layers(config, data, mixture, None, [False] * data["decoder"]["layers"])


def _write_qwen3(model: Model) -> Data:
    attention = attention_of(only_block(model))
    return {
        **_write_mixture(model),
        "attention_bias": attention.bias.query,
        "use_sliding_window": attention.window is not None,
        "sliding_window": attention.window,
    }


FAMILIES = (
    ConfigFamily("qwen2_moe", _read_qwen2, _write_qwen2, decoder_classes("Qwen2Moe", tied=False)),
    ConfigFamily("qwen3_moe", _read_qwen3, _write_qwen3, decoder_classes("Qwen3Moe", tied=False)),
)
