"""The page of the portability matrix: its columns, shares and reasons."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engines.matrix_page import ROUTED, SUMMED, columns_of, reason_of, share
from tests.engines.subject import WHOLE, Kind

VERSIONS = [f"onnxruntime-1.{minor}.0" for minor in (9, 20, 21, 30)]


def cells(**outcomes: str) -> dict[str, Any]:
    """The cells of one structure, by the number of the version."""
    return {f"onnxruntime-1.{name[1:]}.0": {"outcome": outcome} for name, outcome in outcomes.items()}


def test_the_versions_of_onnx_runtime_share_a_column_in_order() -> None:
    assert columns_of(["wasm", *reversed(VERSIONS), "openvino"]) == {
        "onnxruntime": VERSIONS,
        "openvino": ["openvino"],
        "wasm": ["wasm"],
    }


def test_one_share_where_all_versions_agree_and_ranges_where_they_differ() -> None:
    good = cells(v9="computed", v20="computed", v21="computed", v30="computed")
    assert share([good, good], VERSIONS) == "2 of 2"
    bad = good | cells(v21="failed")
    assert share([good, bad], VERSIONS) == "2 of 2 (1.9.0 to 1.20.0, 1.30.0); 1 of 2 (1.21.0)"
    partial = good | cells(v30="not tried")
    assert share([partial], VERSIONS) == "1 of 1 (1.9.0 to 1.21.0); not tried (1.30.0)"


@pytest.mark.parametrize(
    ("engine", "preset", "in_float", "reason"),
    [
        ("onnxruntime-1.20.1", "mixtral-8x7b", True, ROUTED),
        (
            "onnxruntime-1.20.1",
            "mixtral-8x7b",
            False,
            "other values: a batch",
        ),  # the graph itself may be wrong
        ("onnxruntime-1.20.1", "bert-base", True, "other values: a batch"),  # no router
        ("onnxruntime-1.29.0", "bert-base", False, SUMMED),
    ],
)
def test_rounding_explains_other_values_only_where_it_can(
    engine: str, preset: str, in_float: bool, reason: str
) -> None:
    kind = Kind(preset, "portable", "fp16", (WHOLE,))
    words = "a batch, logits: off by 3.00e-01 from ONNX Runtime, 5.0e-02 allowed for rounding"
    assert reason_of(engine, kind, words, in_float=in_float) == reason
