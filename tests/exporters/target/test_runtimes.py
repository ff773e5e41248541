"""The first ONNX Runtime of a graph is the one that was run."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from exporters.target import runtimes
from exporters.target.runtimes import features, minimum_runtime, multiplies_integers, table, version_key
from tests.engines.runtimes import combined, minimum_of, worse
from tests.engines.subject import Kind, graphs_of
from tests.thinned import one_in


def graph(*nodes: onnx.NodeProto, opset: int = 20, dtype: int = TensorProto.FLOAT) -> onnx.ModelProto:
    given = [helper.make_tensor_value_info("x", dtype, [1])]
    made = helper.make_graph(nodes, "graph", given, given)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)])


def fused(op: str, inputs: int = 3, **attributes: Any) -> onnx.NodeProto:
    names = [f"input{place}" for place in range(inputs)]
    return helper.make_node(op, names, ["y"], domain="com.microsoft", **attributes)


def test_the_features_of_a_graph_are_its_opset_its_operators_and_how_it_uses_them() -> None:
    node = fused("GroupQueryAttention", 5, num_heads=4, local_window_size=8, softcap=0.0, do_rotary=0)
    assert features(graph(node, helper.make_node("Add", ["a", "b"], ["c"]), dtype=TensorProto.FLOAT16)) == {
        "opset 20", "float16", "GroupQueryAttention", "GroupQueryAttention in float16",
        "GroupQueryAttention local_window_size", "GroupQueryAttention input 3", "GroupQueryAttention input 4",
    }  # fmt: skip


def test_nodes_inside_other_nodes_are_features_too() -> None:
    body = helper.make_graph([fused("MoE")], "body", [], [helper.make_tensor_value_info("y", 1, [1])])
    assert "MoE" in features(graph(helper.make_node("If", ["c"], ["z"], then_branch=body, else_branch=body)))


def test_what_was_never_run_is_claimed_for_the_newest_version() -> None:
    assert minimum_runtime(graph(fused("Unheard"))) == table()["versions"][-1]


def test_features_that_work_only_alone_need_the_version_of_their_combination(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = {
        "versions": ["1.9.0", "1.20.0", "1.31.0"],
        "features": {"opset 20": "1.9.0", "A": "1.9.0", "B": "1.9.0"},
        "combinations": [[["A", "B"], "1.20.0"]],
    }
    monkeypatch.setattr(runtimes, "table", lambda: written)
    assert minimum_runtime(graph(fused("A"))) == "1.9.0"
    assert minimum_runtime(graph(fused("A"), fused("B"))) == "1.20.0"


@one_in(24)
@pytest.mark.parametrize("kind", sorted(table()["files"]))
def test_no_export_states_an_older_version_than_its_file_needed(kind: str) -> None:
    preset, target, precision, *options = kind.split(" ")
    values = {
        name: value == "True" or (int(value) if value.isdigit() else value)
        for name, value in (option.split("=") for option in options)
    }
    needed = table()["files"][kind]["minimum"]
    stated = max(
        map(minimum_runtime, graphs_of(Kind(preset, target, precision, (*values.items(),)))), key=version_key
    )
    assert needed is not None
    assert version_key(stated) >= version_key(needed)


@pytest.mark.parametrize(
    ("kind", "first"),
    [
        (Kind("gpt2-untied", "cpu", "fp32"), "1.20.1"),
        (Kind("gpt2-untied", "cpu", "int4"), "1.23.2"),  # 1.22.1: Unrecognized attribute: bits
        (Kind("gemma2-27b", "cpu", "fp32"), "1.24.1"),  # 1.23.2: a third off, without a word
        (Kind("llama-3.2-1b", "portable", "fp16"), "1.17.3"),  # 1.16.3: refuses its own expansion of Softmax
        (Kind("t5-3b", "portable", "fp16"), "1.20.1"),  # 1.19.2: NaN, without a word
        (Kind("t5-11b", "cpu", "fp32"), "1.21.1"),  # 1.20.1: off by 3.2, without a word
    ],
    ids=str,
)
def test_the_versions_that_were_stated_wrongly(kind: Kind, first: str) -> None:
    assert max(map(minimum_runtime, graphs_of(kind)), key=version_key) == first
    assert table()["files"][str(kind)]["minimum"] == first


def test_the_first_version_is_the_one_from_which_on_none_fails() -> None:
    versions = ["1.1.0", "1.2.0", "1.10.0"]
    assert minimum_of([], versions) == "1.1.0"
    assert minimum_of(["1.1.0"], versions) == "1.2.0"
    assert minimum_of(["1.2.0"], versions) == "1.10.0"
    assert minimum_of(["1.10.0"], versions) is None


def test_a_combination_is_found_where_features_alone_do_not_explain_a_failure() -> None:
    files: list[dict[str, Any]] = [
        {"kind": "a", "features": ["A", "C"], "minimum": "1.1.0"},
        {"kind": "b", "features": ["B", "C"], "minimum": "1.1.0"},
        {"kind": "ab", "features": ["A", "B", "C"], "minimum": "1.2.0"},
    ]
    assert combined(files, dict.fromkeys("ABC", "1.1.0")) == [(["A", "B"], "1.2.0")]


def test_a_kind_that_needs_a_newer_version_than_was_stated_is_told() -> None:
    before, now = ({"gpt2 cpu fp32": {"minimum": version}} for version in ("1.2.0", "1.10.0"))
    assert [*worse(before, now)] == ["gpt2 cpu fp32: 1.2.0 was stated, 1.10.0 is the first that computes it"]
    assert not [*worse(now, before)]


def test_products_of_8_bit_integers_are_those_that_saturate() -> None:
    assert multiplies_integers(["MatMulInteger"])
    assert not multiplies_integers(["MatMulNBits", "DequantizeLinear"])
