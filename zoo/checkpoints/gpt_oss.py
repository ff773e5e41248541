"""GPT-OSS (OpenAI, 2025): ``GptOssModel`` and its heads.

As Llama, with sinks, and with all experts of a layer as one tensor: d_in x d_out, gate and up by turns.
"""

from __future__ import annotations

from dataclasses import replace

from zoo.checkpoints.family import Rule, affine, same
from zoo.checkpoints.llama import LLAMA
from zoo.checkpoints.transforms import Interleaved, Transposed

_STORED, _BLOCK = "layers.{layer}", "decoder.blocks.{layer}"
_EXPERTS, _OURS = f"{_STORED}.mlp.experts", f"{_BLOCK}.feed_forward.experts"

GPT_OSS = replace(
    LLAMA,
    name="gpt_oss",
    model_types=("gpt_oss",),
    head_prefixes={},
    rules=(
        *LLAMA.rules,
        same(f"{_STORED}.self_attn.sinks", f"{_BLOCK}.attention.sinks"),
        *affine(f"{_STORED}.mlp.router", f"{_BLOCK}.feed_forward.router"),
        Rule(
            f"{_EXPERTS}.gate_up_proj",
            (f"{_OURS}.gate.weight", f"{_OURS}.up.weight"),
            Transposed(Interleaved(1)),
        ),
        Rule(f"{_EXPERTS}.gate_up_proj_bias", (f"{_OURS}.gate.bias", f"{_OURS}.up.bias"), Interleaved(1)),
        same(f"{_EXPERTS}.down_proj", f"{_OURS}.down.weight"),
        same(f"{_EXPERTS}.down_proj_bias", f"{_OURS}.down.bias"),
    ),
)
