"""Recurrences in ONNX: of any length, by the operation of a target or by standard ones, in half precision too."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch

from exporters.graph.fusing import fuse
from exporters.target.targets import TARGETS
from tests.exporters.graphs import Module, assert_same, graph_of, placeholder
from tests.thinned import one_in
from zoo import functional
from zoo.tracing.symbols import Symbols
from zoo.tracing.tracer import Tracer

LENGTHS = [{"B": batch, "T": length} for batch, length in ((1, 1), (2, 63), (1, 64), (2, 65), (1, 300))]
HEADS = ("f B 2 T 6", "f B 2 T 6", "f B 4 T 5", "f B 4 T", "f B 4 6 5")
SCANNED = ("f B T 6", "f B T 6", "f 6 3", "f B T 3", "f B T 3", "f B 6 3")
CHANNELS = ("f B T 6", "f B T 6", "f B 6")


def attended(query: Any, key: Any, value: Any, decay: Any, state: Any, mask: Any) -> Any:
    """Linear attention with small queries, so that outputs stay near 1; an eighth is exact in half precision."""
    real = (mask > -3).to(torch.int64)
    return functional.linear_attention(query / 8, key, value, -decay.abs(), state, real)


def scanned(x: Any, delta: Any, a: Any, b: Any, c: Any, state: Any, mask: Any) -> Any:
    real = (mask > -3).to(torch.int64)
    return functional.selective_scan(x / 8, delta.abs(), -a.abs(), b, c, state, real)


def recurred(x: Any, decay: Any, state: Any, mask: Any) -> Any:
    return functional.diagonal_recurrence(x / 8, -decay.abs(), state, (mask > -3).to(torch.int64))


def operations(model: Any) -> Counter[str]:
    """The operations of a graph."""
    return Counter(node.op_type for node in model.graph)


@one_in(3)
@pytest.mark.parametrize("target", ["portable", "portable-27", "cpu"])
@pytest.mark.parametrize(
    ("function", "inputs"), [(attended, HEADS), (scanned, SCANNED), (recurred, CHANNELS)]
)
def test_a_recurrence_of_any_length_with_padding(function: Any, inputs: Any, target: str) -> None:
    model = assert_same(function, *inputs, "i B T", sizes=LENGTHS, target=target)
    fused = function is attended and target != "portable"
    assert operations(model)["LinearAttention"] == int(fused)
    assert operations(model)["Scan"] == int(not fused)


@pytest.mark.parametrize("target", ["portable", "cpu"])
@pytest.mark.parametrize(
    ("function", "inputs"), [(attended, HEADS), (scanned, SCANNED), (recurred, CHANNELS)]
)
def test_half_floats_are_computed_in_float32(function: Any, inputs: Any, target: str) -> None:
    *halves, state = (text.replace("f ", "h ") for text in inputs)
    assert_same(function, *halves, state.replace("h ", "f "), "i B T", sizes=LENGTHS, target=target)


@pytest.mark.parametrize("target", ["portable", "cpu"])
def test_results_have_the_dtype_of_values(target: str) -> None:
    keys = [text.replace("f ", "h ") for text in HEADS[:2]]
    assert_same(attended, *keys, *HEADS[2:], "i B T", sizes=LENGTHS, target=target)


@pytest.mark.parametrize("target", ["cpu", "portable-27"])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_keys_of_fewer_heads_are_repeated_only_for_the_standard_operation(groups: int, target: str) -> None:
    inputs = (f"f B {groups} T 6", f"f B {groups} T 6", *HEADS[2:], "i B T")
    model = assert_same(attended, *inputs, sizes=LENGTHS, target=target)
    assert operations(model)["Expand"] == (2 if target == "portable-27" and groups < 4 else 0)


def test_layers_share_the_lengths_of_chunks() -> None:
    def twice(*given: Any) -> Any:
        output, state = attended(*given)
        return attended(given[0], given[1], output, given[3], state, given[5])

    once, two = (operations(graph_of(Module(function), *HEADS, "i B T")) for function in (attended, twice))
    assert two["Scan"] == 2 * once["Scan"]
    assert two["Div"] == once["Div"] > 0


@pytest.mark.parametrize(
    ("function", "inputs", "reason"),
    [
        (scanned, SCANNED, "it takes one decay per channel and state of every token, which would all be in memory"),
        (recurred, CHANNELS, "it takes longer for heads of width 1 than a Scan over tokens"),
        (attended, HEADS, None),
    ],
)  # fmt: skip
def test_what_a_scan_computes_is_told_with_its_reason(function: Any, inputs: Any, reason: str | None) -> None:
    given = [placeholder(f"x{place}", text) for place, text in enumerate((*inputs, "i B T"))]

    def reasons(target: str) -> list[str]:
        traced = Tracer(Module(function), Symbols.of(given, ())).run(
            lambda module, values: {"y": module(*values.values())[0]}, given
        )
        return fuse(traced, TARGETS[target], None)

    for target in ("cpu", "cuda"):
        assert reasons(target) == ([] if reason is None else [f"LinearAttention: : {reason}"])
    assert reasons("portable") == []
