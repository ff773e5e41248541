"""Mixtral (Jiang et al., 2024): ``MixtralForCausalLM``.  As Llama, with the matrices of each expert on their own."""

from __future__ import annotations

from dataclasses import replace

from zoo.checkpoints.family import Rule, same
from zoo.checkpoints.llama import LLAMA
from zoo.checkpoints.transforms import Transposed

_STORED, _FEED_FORWARD = "layers.{layer}.block_sparse_moe", "decoder.blocks.{layer}.feed_forward"

MIXTRAL = replace(
    LLAMA,
    name="mixtral",
    model_types=("mixtral",),
    head_prefixes={},
    rules=(
        *LLAMA.rules,
        same(f"{_STORED}.gate.weight", f"{_FEED_FORWARD}.router.weight"),
        same(f"{_STORED}.experts.{{expert}}.w1.weight", f"{_FEED_FORWARD}.experts.gate.weight"),
        same(f"{_STORED}.experts.{{expert}}.w3.weight", f"{_FEED_FORWARD}.experts.up.weight"),
        Rule(
            f"{_STORED}.experts.{{expert}}.w2.weight", (f"{_FEED_FORWARD}.experts.down.weight",), Transposed()
        ),
    ),
)
