"""Phi-3 (Abdin et al., 2024): ``Phi3Config``."""

from __future__ import annotations

from specs.model import Model
from specs.position import Rope
from zoo.configs.config import Config
from zoo.configs.decoders import attention_of, only_block, stack_of
from zoo.configs.family import ConfigFamily, Data
from zoo.configs.heads import decoder_classes
from zoo.configs.llamas import Defaults, read_llama, write_llama

_ORIGINAL = 4096
_DEFAULTS = Defaults(
    vocab_size=32064, hidden_size=3072, intermediate_size=8192, context=4096, fraction=1.0, eps=1e-5
)
_SCALINGS = {"longrope": "longrope", "su": "longrope", "yarn": "longrope"}
"""The first configs have other names for the one scaling that the reference takes."""


def _read(config: Config, class_name: str) -> Data:
    for name in ("attention_bias", "mlp_bias", "lm_head_bias"):
        config.must(name, False, "the reference has no biases")
    for name in ("full_attn_mod", "interpolate_factor"):
        config.must(name, 1, "the reference does not read it")
    config.ignore("embd_pdrop")  # of no effect in the reference
    return read_llama(
        config,
        _DEFAULTS,
        attention={"bias": False, "window": config.int("sliding_window")},
        block={"dropout": config.float("resid_pdrop", default=0.0)},
        rope={"kinds": _SCALINGS, "original": _ORIGINAL},
    )


def _write(model: Model) -> Data:
    block, position = only_block(model), model.position_of(stack_of(model))
    scaling = position.scaling if isinstance(position, Rope) else None
    original = getattr(scaling, "original_context_length", _ORIGINAL)
    return {
        **write_llama(model),
        "original_max_position_embeddings": original,
        "sliding_window": attention_of(block).window,
        "resid_pdrop": block.dropout,
    }


CLASSES = decoder_classes("Phi3", tied=False, without=("ForQuestionAnswering",))

FAMILIES = (ConfigFamily("phi3", _read, _write, CLASSES),)
