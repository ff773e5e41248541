"""Mixtral (Jiang et al., 2024): ``MixtralConfig``."""

from __future__ import annotations

from specs.model import Model
from zoo.configs.config import Config
from zoo.configs.decoders import attention_of, only_block
from zoo.configs.family import ConfigFamily, Data
from zoo.configs.heads import decoder_classes
from zoo.configs.layers import laid_over
from zoo.configs.llamas import Defaults, read_llama, write_llama
from zoo.configs.mixtures import expert_of, mixture_of, training_alone

_DEFAULTS = Defaults(intermediate_size=14336, kv_heads=8, context=131072, theta=1e6, eps=1e-5)


def _read(config: Config, class_name: str) -> Data:
    training_alone(config)
    data = read_llama(config, _DEFAULTS, attention={"bias": False, "window": config.int("sliding_window")})
    mixture = {
        "kind": "mixture",
        "experts": config.int("num_local_experts", "num_experts", default=8),
        "top_k": config.int("num_experts_per_tok", default=2),
        "expert": data["decoder"]["block"]["feed_forward"],
    }
    return laid_over(data, {"decoder": {"block": {"feed_forward": mixture}}})


def _write(model: Model) -> Data:
    mixture = mixture_of(model)
    return {
        **write_llama(model, expert_of(mixture)),
        "sliding_window": attention_of(only_block(model)).window,
        "num_local_experts": mixture.experts,
        "num_experts_per_tok": mixture.top_k,
    }


FAMILIES = (ConfigFamily("mixtral", _read, _write, decoder_classes("Mixtral", tied=False)),)
