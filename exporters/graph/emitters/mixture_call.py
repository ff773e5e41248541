"""A mixture of experts under emission: its operands, and its weights as operations read them.

Shapes: batch B, length T, rows R (all tokens of a batch), width D, experts E, chosen experts K, hidden width H.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from exporters.graph.emitters.expert_matrices import ExpertWeights, joint_name
from exporters.graph.emitters.registry import Call, Operand
from exporters.graph.quantization.interleaved import InterleavedWeights
from exporters.graph.values import Value
from zoo.weights.blocks import Blocks


@dataclass(frozen=True)
class MixtureCall:
    """A call of a mixture. ``x``: B T D; ``weights`` and ``chosen``: B T K; ``into``: up, and gate if it has one.

    ``logits``: B T E, if the weights are ``total`` times the softmax of the chosen experts' logits; ``total``: the sum of
    each token's weights, if known. ``of_input``: weights multiply the inputs of experts.
    """

    call: Call
    x: Operand
    weights: Operand
    chosen: Operand
    logits: Operand | None
    total: float | None
    into: Sequence[ExpertWeights]
    down: ExpertWeights
    inner: nn.Module
    of_input: bool = False

    @property
    def count(self) -> int:
        """The number of experts."""
        return self.down.weight.static(0)

    @property
    def choices(self) -> int:
        """The number of experts chosen for each token."""
        return self.chosen.static(-1)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of all computation."""
        return self.down.weight.dtype

    @property
    def blocks(self) -> Blocks | None:
        """The blocks of quantized matrices, the same for all; None for floats."""
        return self.down.blocks(self.call)

    def rows(self, x: Operand) -> Value:
        """A tensor as one row per token: B T N -> R N."""
        return self.call.graph.reshape(x.value, [-1, x.static(-1)])

    def per_expert(self, values: Value, rest: float) -> Value:
        """Scatter values of the chosen experts, B T K, over all experts, R E, with ``rest`` for the others."""
        call, graph, chosen = self.call, self.call.graph, self.chosen
        sizes = [graph.size(dim, chosen.value, axis) for axis, dim in enumerate(chosen.dims[:-1])]
        shape = call.op("Concat", *sizes, graph.ints(self.count), axis=0)
        blank = call.op("Expand", graph.constant(rest, self.dtype), shape)
        scattered = call.op("ScatterElements", blank, chosen.value, values, axis=-1)  # B T E
        result: Value = call.op("Reshape", scattered, graph.ints(-1, self.count))
        return result

    @property
    def parts(self) -> int:
        """The number of parts into which every expert is cut; 1 if matrices are quantized, or if the hidden width is not a
        multiple of the target's."""
        parts = 1 if self.blocks is not None else self.call.graph.target.expert_parts
        return parts if self.down.weight.static(2) % parts == 0 else 1

    def first_weight(self) -> Value:
        """Up, or gate and up interleaved: E H D or E (2 H) D, part by part."""
        return self._joint([matrix.weight for matrix in self.gate_first], "weight")

    def first_bias(self) -> Value | None:
        """The biases of ``first_weight``: E H or E (2 H), part by part."""
        biases = [matrix.bias for matrix in self.gate_first if matrix.bias is not None]
        return self._joint(biases, "bias") if biases else None

    def second_weight(self) -> Value:
        """Down, E D H, with the columns of each part: (parts E) D (H / parts)."""
        weight, parts = self.down.weight, self.parts
        if parts == 1:
            return weight.value
        count, rows, width = weight.info[0].shape
        content = InterleavedWeights((weight.value.name,), rows, width, self.dtype, parts, axis=1)
        shape = (parts * count, rows, width // parts)
        return self.call.graph.parameter(f"{self.down.name}.parts", shape, self.dtype, content)

    def second_bias(self) -> Value | None:
        """The biases of down, E D; zero for all parts after the first."""
        bias = self.down.bias_value
        if bias is None or self.parts == 1:
            return bias
        rest = self.call.graph.ints(0, 0, (self.parts - 1) * self.count, 0)
        padded: Value = self.call.op("Pad", bias, rest)
        return padded

    def _joint(self, operands: Sequence[Operand], kind: str) -> Value:
        """Weights of one shape, E H ..., with their rows interleaved: (parts E) (2 H / parts) ..."""
        parts = self.parts
        if len(operands) == parts == 1:
            return operands[0].value
        count, rows, *rest = operands[0].info[0].shape
        names, width = tuple(operand.value.name for operand in operands), rest[0] if rest else 1
        content = InterleavedWeights(names, rows, width, self.dtype, parts)
        shape = (parts * count, len(names) * rows // parts, *rest)
        name = (
            f"{joint_name(self.gate_first)}.{kind}"
            if len(names) > 1
            else f"{self.gate_first[0].name}.{kind}_parts"
        )
        return self.call.graph.parameter(name, shape, self.dtype, content)

    @property
    def gate_first(self) -> list[ExpertWeights]:
        """Gate and up, or up alone."""
        return [*self.into][::-1]


def operands(parts: Sequence[Any]) -> list[ExpertWeights]:
    """The matrices of the arguments of a traced mixture."""
    return [ExpertWeights(*part) for part in parts]
