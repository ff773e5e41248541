"""The ONNX Runtime sessions that zoo opens, and their options."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx

from exporters.target.environment import required_environment
from exporters.target.providers import plugin_devices, with_options
from exporters.target.runtimes import multiplies_integers

EXACT_INTEGERS = "session.x64quantprecision"
"""The key whose value ``1`` keeps sums of 8-bit products exact on x86-64 processors without VNNI, where they would
otherwise saturate."""

FLOAT32_LEVEL = 1
"""The accuracy level at which MatMulNBits, and QMoE with 4-bit weights, compute in float32."""

SIGNED_BLOCKS = "session.qdqisint8allowed"
"""The key whose value ``1`` preserves DequantizeLinear with signed codes."""


def session_options(path: Path, entries: Mapping[str, str] | None = None) -> Any:
    """Options for a graph: 8-bit products are exact on every processor unless other ``entries`` are given, and nothing is
    logged."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # errors are raised
    for key, value in (session_entries(path) if entries is None else entries).items():
        options.add_session_config_entry(key, value)
    return options


def open_session(path: Path, options: Any, providers: Sequence[str]) -> Any:
    """A session of a graph, with the environment variables without which ONNX Runtime refuses its opset."""
    import onnxruntime

    os.environ.update(required_environment(opset_of(path)))
    if devices := [device for provider in providers for device in plugin_devices(provider)]:
        options.add_provider_for_devices(devices[:1], {})
        return onnxruntime.InferenceSession(path, options)
    return onnxruntime.InferenceSession(path, options, providers=with_options(providers))


def session_entries(path: Path) -> dict[str, str]:
    """Return the session configuration entries that make the 8-bit products of a graph exact on every processor.

    Other graphs need none: with the first entry alone, ONNX Runtime 1.31 converts codes that a graph dequantizes in blocks to
    unsigned, and then refuses to run it. The second prevents that where a graph has both.
    """
    nodes = _loaded(path).graph.node
    if not multiplies_integers(node.op_type for node in nodes):
        return {}
    return {EXACT_INTEGERS: "1", **({SIGNED_BLOCKS: "1"} if _has_blocks(nodes) else {})}


def run_entries(path: Path, *, packed: bool, exact: bool) -> dict[str, str]:
    """Return the session configuration entries with which a graph is verified.

    Unless ``packed``, weights are used where they are in the file; ``exact`` is for exact forms
    (:mod:`exporters.verification.exact.graph`).
    """
    entries = {**session_entries(path), "session.intra_op.allow_spinning": "0"}
    if not packed:
        entries["session.disable_prepacking"] = "1"
    if exact:  # for the products that ONNX Runtime fuses from DequantizeLinear and MatMul
        entries["session.qdq_matmulnbits_accuracy_level"] = str(FLOAT32_LEVEL)
    return entries


def opset_of(path: Path) -> int:
    """The opset of a graph; 0 for a file that is not ONNX."""
    return max((entry.version for entry in _loaded(path).opset_import if entry.domain == ""), default=0)


def _loaded(path: Path) -> onnx.ModelProto:
    """The message of a graph; an empty one for a file that is not ONNX, which the session reports."""
    try:
        return onnx.load(path, load_external_data=False)
    except Exception:  # the session reports the error
        return onnx.ModelProto()


def _has_blocks(nodes: Sequence[onnx.NodeProto]) -> bool:
    return any(
        attribute.name == "block_size" and attribute.i
        for node in nodes
        if node.op_type == "DequantizeLinear"
        for attribute in node.attribute
    )
