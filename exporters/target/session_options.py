"""ONNX Runtime sessions and their options."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx

from exporters.target.environment import required_environment
from exporters.target.mxfp4_experts import check_mxfp4_experts
from exporters.target.providers import plugin_devices, with_options
from exporters.target.runtimes import multiplies_integers

EXACT_INTEGERS = "session.x64quantprecision"
"""The key whose value ``1`` keeps sums of 8-bit products exact on x86-64 processors without VNNI; otherwise they may saturate."""

FLOAT32_LEVEL = 1
"""The accuracy level at which MatMulNBits, and QMoE with 4-bit weights, compute in float32."""

SIGNED_BLOCKS = "session.qdqisint8allowed"
"""The key whose value ``1`` preserves DequantizeLinear with signed codes."""


def session_options(path: Path, entries: Mapping[str, str] | None = None) -> Any:
    """The options of a session without logging, by default with 8-bit products that are exact on every processor; ``entries``
    replace that default."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # errors are raised anyway
    for key, value in (session_entries(path) if entries is None else entries).items():
        options.add_session_config_entry(key, value)
    return options


def open_session(path: Path, options: Any, providers: Sequence[str]) -> Any:
    """Open a session of a graph, with the environment variables that ONNX Runtime requires for its opset.

    Raises :class:`specs.base.errors.UserError` for experts that none of the providers reads.
    """
    import onnxruntime

    model = _loaded(path)
    check_mxfp4_experts(path, model, providers)
    os.environ.update(required_environment(_opset(model)))
    if devices := [device for provider in providers for device in plugin_devices(provider)]:
        options.add_provider_for_devices(devices[:1], {})
        return onnxruntime.InferenceSession(path, options)
    return onnxruntime.InferenceSession(path, options, providers=with_options(providers))


def session_entries(path: Path) -> dict[str, str]:
    """The session configuration entries that make the 8-bit products of a graph's file exact on every processor."""
    return exact_products(_loaded(path).graph)


def exact_products(graph: onnx.GraphProto) -> dict[str, str]:
    """The session configuration entries that make the 8-bit products of a graph exact on every processor; others need none.

    With the first entry alone, ONNX Runtime converts codes that a graph dequantizes in blocks to unsigned codes: versions 1.25
    to 1.29 then end the process, and later ones reject the graph. The second entry prevents that in a graph with both.
    """
    nodes = graph.node
    if not multiplies_integers(node.op_type for node in nodes):
        return {}
    return {EXACT_INTEGERS: "1", **({SIGNED_BLOCKS: "1"} if _has_blocks(nodes) else {})}


def run_entries(path: Path, *, packed: bool, exact: bool) -> dict[str, str]:
    """The session configuration entries for verifying a graph.

    Unless ``packed``, kernels use weights in their file layout; ``exact`` is for exact forms
    (:mod:`exporters.verification.exact.graph`).
    """
    entries = {**session_entries(path), "session.intra_op.allow_spinning": "0"}
    if not packed:
        entries["session.disable_prepacking"] = "1"
    if exact:  # for products that ONNX Runtime fuses from DequantizeLinear and MatMul
        entries["session.qdq_matmulnbits_accuracy_level"] = str(FLOAT32_LEVEL)
    return entries


def opset_of(path: Path) -> int:
    """The opset of a graph; 0 for a file that is not ONNX."""
    return _opset(_loaded(path))


def _opset(model: onnx.ModelProto) -> int:
    return max((entry.version for entry in model.opset_import if entry.domain == ""), default=0)


def _loaded(path: Path) -> onnx.ModelProto:
    """The protobuf message of a graph; empty for a file that is not ONNX, which the session reports."""
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
