"""The options of every ONNX Runtime session that zoo opens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx

EXACT_INTEGERS = "session.x64quantprecision"
"""The key whose value ``1`` keeps sums of 8-bit products exact on x86-64 processors without VNNI, where they would
otherwise saturate."""

SIGNED_BLOCKS = "session.qdqisint8allowed"
"""The key whose value ``1`` preserves DequantizeLinear with signed codes."""


def session_options(path: Path) -> Any:
    """Options for a graph: 8-bit products are exact on every processor, and nothing is logged."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # errors are raised
    for key, value in session_entries(path).items():
        options.add_session_config_entry(key, value)
    return options


def session_entries(path: Path) -> dict[str, str]:
    """Return the session configuration entries that make the 8-bit products of a graph exact on every processor.

    In a graph that dequantizes in blocks, ONNX Runtime 1.31 would also convert the blocks to unsigned, and then refuse to
    run the graph: the second entry prevents that.
    """
    return {EXACT_INTEGERS: "1", **({SIGNED_BLOCKS: "1"} if _has_blocks(path) else {})}


def _has_blocks(path: Path) -> bool:
    try:
        graph = onnx.load(path, load_external_data=False).graph
    except Exception:  # the session reports the error
        return False
    return any(
        attribute.name == "block_size" and attribute.i
        for node in graph.node
        if node.op_type == "DequantizeLinear"
        for attribute in node.attribute
    )
