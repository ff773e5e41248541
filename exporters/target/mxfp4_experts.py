"""Graphs with experts of 4-bit floats (MXFP4), for which the CUDA provider alone has a kernel."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import onnx

from exporters.target.providers import CUDA
from specs.base.errors import UserError, option_name

MXFP4 = "fp4"
"""QMoE's name for 4-bit floats with an exponent for every 32."""


def reads_mxfp4(node: onnx.NodeProto) -> bool:
    """Whether a node is a mixture with experts of 4-bit floats."""
    return node.op_type == "QMoE" and any(
        attribute.name == "quant_type" and attribute.s == MXFP4.encode() for attribute in node.attribute
    )


def has_mxfp4_experts(model: onnx.ModelProto) -> bool:
    """Whether a graph has such a mixture."""
    return any(map(reads_mxfp4, model.graph.node))


def check_mxfp4_experts(path: Path, model: onnx.ModelProto, providers: Collection[str]) -> None:
    """Raise :class:`specs.base.errors.UserError` for a graph with such a mixture, unless CUDA is among the providers.

    Others have no kernel for the exponents, or would read the codes as integers.
    """
    if CUDA in providers or not has_mxfp4_experts(model):
        return
    raise UserError(
        f"{path}: its experts are 4-bit floats (MXFP4), which only {CUDA} reads\n  value: {', '.join(providers)}\n"
        "  Run it with onnxruntime-gpu on a GPU of compute capability 8.0 or later, or export the model with "
        f"{option_name('target')} cpu for this machine."
    )
