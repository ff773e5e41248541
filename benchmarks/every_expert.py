"""Baselines of mixtures: every expert computes every token, and the results of experts that are not chosen count 0.

Shapes: batch B, length T, rows R (all tokens of a batch), width D, experts E, hidden width H.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import onnx
import torch.nn.functional as F
from onnx import helper, parser
from torch import Tensor, nn

from zoo.components.mixture import Experts

DOMAIN, NAME = "benchmarks", "EveryExpert"
FUNCTION = """
<domain: "benchmarks", opset_import: ["" : 21]>
EveryExpert <top_k, row, every, whole> (x, logits, gate_up, down) => (mixed)
{
    rows = Constant <value_ints: ints = @row> ()
    zero = Constant <value_ints: ints = [0]> ()
    one = Constant <value_ints: ints = [1]> ()
    two = Constant <value_ints: ints = [2]> ()
    last = Constant <value_ints: ints = [-1]> ()
    end = Constant <value_ints: ints = [65536]> ()
    gates = Slice (gate_up, zero, end, one, two)
    gate_rows = Reshape (gates, rows)
    gate = Transpose (gate_rows)
    ups = Slice (gate_up, one, end, one, two)
    up_rows = Reshape (ups, rows)
    up = Transpose (up_rows)
    downs = Transpose <perm = [0, 2, 1]> (down)
    down_rows = Reshape (downs, rows)

    count = Constant <value_ints: ints = @top_k> ()
    highest, places = TopK (logits, count)
    least = ReduceMin (highest, last)
    none = Constant <value_float: float = -1e30> ()
    chosen = GreaterOrEqual (logits, least)
    limited = Where (chosen, logits, none)
    weights = Softmax (limited)
    weight = Unsqueeze (weights, last)

    gated = MatMul (x, gate)
    sigmoid = Sigmoid (gated)
    activated = Mul (gated, sigmoid)
    raised = MatMul (x, up)
    hidden = Mul (activated, raised)
    split = Constant <value_ints: ints = @every> ()
    by_expert = Reshape (hidden, split)
    weighted = Mul (by_expert, weight)
    joint = Constant <value_ints: ints = @whole> ()
    joined = Reshape (weighted, joint)
    summed = MatMul (joined, down_rows)
    shape = Shape (x)
    mixed = Reshape (summed, shape)
}
"""
"""SwiGLU in three products of all experts; constants are folded when the file is loaded."""


def export_every_expert(mixture: Path, directory: Path) -> Path:
    """A copy of an export for target cpu in fp32, in which every expert computes every token, part by part as MoE does."""
    shutil.copytree(mixture, directory, copy_function=os.link)
    model = onnx.load(directory / "model.onnx", load_external_data=False)
    sizes = {weight.name: weight.dims for weight in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "MoE":
            x, logits, gate_up, _, down = node.input[:5]
            experts, width, hidden = sizes[down]
            top_k = next(attribute.i for attribute in node.attribute if attribute.name == "k")
            node.CopyFrom(
                helper.make_node(
                    NAME,
                    [x, logits, gate_up, down],
                    node.output,
                    name=node.name,
                    domain=DOMAIN,
                    top_k=[top_k],
                    row=[-1, width],
                    every=[-1, experts, hidden],
                    whole=[-1, experts * hidden],
                )
            )
    model.functions.append(parser.parse_function(FUNCTION))
    model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    record = json.loads((directory / "export.json").read_text())
    del record["files"]["model.onnx"]
    for name, content in (
        ("model.onnx", model.SerializeToString()),
        ("export.json", json.dumps(record).encode()),
    ):
        (directory / name).unlink()  # the other directory keeps its file
        (directory / name).write_bytes(content)
    return directory


class EveryExpert(nn.Module):
    """SwiGLU experts in PyTorch, as three products of all experts."""

    def __init__(self, experts: Experts) -> None:
        super().__init__()
        self.experts = experts
        down = self.experts.down.weight
        down.data = down.data.mT.contiguous().mT  # so that joining the experts copies nothing

    def forward(self, x: Tensor, weights: Tensor, chosen: Tensor) -> Tensor:
        """x: B T D, weights and chosen: B T K -> B T D."""
        gate, up, down = self.experts.gate, self.experts.up.weight, self.experts.down.weight
        assert gate is not None
        every = weights.new_zeros(*x.shape[:-1], len(up)).scatter(-1, chosen, weights)  # B T E
        raised, gated = F.linear(x, up.flatten(0, 1)), F.linear(x, gate.weight.flatten(0, 1))  # B T (E H)
        hidden = self.experts.inner(raised, gated).unflatten(-1, (len(up), -1))  # B T E H
        return (hidden * every.unsqueeze(-1)).flatten(-2) @ down.mT.flatten(0, 1)
