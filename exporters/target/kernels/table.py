"""The kernels of execution providers, recorded from the providers themselves.

``cuda.json``: the kernels of ONNX Runtime's CUDA provider, in the version that it names; ``python -m tests.cuda.record`` writes it.
``webgpu.json``: the kernels of the WebGPU provider's plugin; ``python -m tests.webgpu.record`` writes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import onnx

from exporters.target import onnx_schemas
from exporters.target.providers import CUDA, WEBGPU

_TABLES = {CUDA: "cuda.json", WEBGPU: "webgpu.json"}


@dataclass(frozen=True)
class Kernel:
    """One kernel: the version of its operator, and the element types of each input and output.

    ``types`` has the keys ``in0``, ``out0`` and so on; ``in*`` stands for every input.
    """

    since: int
    types: Mapping[str, frozenset[str]]

    def takes(self, version: int, inputs: Sequence[str | None], outputs: Sequence[str | None]) -> bool:
        """Whether it computes a node of the operator's ``version`` with these element types; None matches any."""
        sides = (("in", inputs), ("out", outputs))
        return version == self.since and all(
            dtype is None or dtype in self._allowed(side, index, dtype)
            for side, dtypes in sides
            for index, dtype in enumerate(dtypes)
        )

    def _allowed(self, side: str, index: int, dtype: str) -> frozenset[str]:
        every = self.types.get(f"{side}*", frozenset({dtype}))
        return self.types.get(f"{side}{index}", every)


@dataclass(frozen=True)
class KernelTable:
    """The kernels of a provider by operator, and the release of the recording."""

    source: str
    provider: str
    kernels: Mapping[str, tuple[Kernel, ...]]

    def computes(
        self,
        operation: str,
        opset: int,
        inputs: Sequence[str | None],
        outputs: Sequence[str | None],
        domain: str = "",
    ) -> bool:
        """Whether the provider has a kernel for an operation in a graph of this opset, with these element types."""
        name = f"{domain}:{operation}" if domain else operation
        version = 1 if domain else onnx_schemas.since(operation, opset)
        return any(kernel.takes(version, inputs, outputs) for kernel in self.kernels.get(name, ()))

    def loses(self, operation: str, first: int, last: int) -> bool:
        """Whether a standard operation has a float32 kernel in the first opset, and none in the last."""
        return self.computes(operation, first, ["float"], []) and not self.computes(
            operation, last, ["float"], []
        )

    def computes_node(
        self, node: onnx.NodeProto, opset: int, inputs: Sequence[str | None], outputs: Sequence[str | None]
    ) -> bool:
        """Whether the provider has a kernel for a node in a graph of this opset, with these element types."""
        return self.computes(node.op_type, opset, inputs, outputs, node.domain)


@cache
def table_of(provider: str) -> KernelTable | None:
    """The kernels of a provider; None if none were recorded."""
    if provider not in _TABLES:
        return None
    recorded = json.loads(Path(__file__).with_name(_TABLES[provider]).read_text("utf-8"))
    kernels = {
        name: tuple(
            Kernel(row["since"], {key: frozenset(names) for key, names in row["types"].items()})
            for row in rows
        )
        for name, rows in recorded["kernels"].items()
    }
    return KernelTable(recorded["source"], recorded["provider"], kernels)
