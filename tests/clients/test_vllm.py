"""vLLM serves a model's own code with the tokens that zoo generates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import zoo
from specs.model.model import Model
from tests.clients.client import ENVIRONMENTS, VLLM
from tests.zoo.stored import stored
from tests.zoo.tiny import BLOCK, gpt2

pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(
        not (ENVIRONMENTS / "vllm" / ".installed").exists(),
        reason="vLLM is not installed: it takes 3.5 GB; run `make .clients/vllm/.installed`",
    ),
]

PROMPTS = [[1, 5, 2, 7], [4, 0, 11], [9, 8]]
GATED = {"kind": "gated", "hidden": 64, "activation": "silu"}
HEADS = {"kind": "grouped_query", "heads": 4, "kv_heads": 2, "head_dim": 32}
WIDE = {
    "d_model": 64,
    "position": {"kind": "rope"},
    "context_length": 64,
}
"""Heads of 32: kernels of attention for processors take no narrower ones."""


def wide(name: str, **block: object) -> Model:
    return gpt2(
        name=name,
        **WIDE,
        decoder={"layers": 2, "block": {**BLOCK, "attention": HEADS, "feed_forward": GATED, **block}},
    )


CASES = {
    "sandwich norms": wide("vllm-sandwich", kind="sandwich"),
    "windows": wide("vllm-windows", attention={**HEADS, "window": 3}),
    "soft caps": wide("vllm-caps", attention={**HEADS, "softcap": 2.0}),
    "gates and norms of queries": wide(
        "vllm-gates",
        attention={**HEADS, "output_gate": True, "qk_norm": {"norm": {"kind": "rms_norm"}, "over": "head"}},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_same_tokens(case: str, tmp_path: Path) -> None:
    spec = CASES[case]
    weights = stored(spec, tmp_path / "own")
    zoo.convert(spec, weights, tmp_path / "code", remote_code=True)
    ours: Any = zoo.build(spec, str(weights))
    assert VLLM(tmp_path / "code", prompts=PROMPTS, new_tokens=6) == ours.generate(PROMPTS, 6)
