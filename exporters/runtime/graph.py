"""A graph loaded in ONNX Runtime: what goes in and comes out, and where its tensors live."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnxruntime import OrtValue

from exporters.providers import CPU, present
from specs.errors import UserError, option_name

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]

BFLOAT16 = 16
"""ONNX's number for the type that numpy lacks."""

_ELEMENTS = {
    "tensor(float)": (1, 4),
    "tensor(uint8)": (2, 1),
    "tensor(int8)": (3, 1),
    "tensor(int32)": (6, 4),
    "tensor(int64)": (7, 8),
    "tensor(float16)": (10, 2),
    "tensor(bfloat16)": (BFLOAT16, 2),
}
"""ONNX's number and the bytes of each element type that graphs take and give."""


@dataclass(frozen=True)
class Slot:
    """An input or an output: ONNX's number for its element type, the bytes of one element, and its dims, some named."""

    name: str
    element: int
    width: int
    dims: tuple[int | str, ...]


class Graph:
    """An ONNX file in a session of its own.

    Raises :class:`specs.errors.UserError` where ONNX Runtime cannot load it.
    """

    def __init__(self, path: Path, providers: tuple[str, ...], threads: int = 0) -> None:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # what goes wrong is told here
        options.intra_op_num_threads = threads
        begun = time.perf_counter()
        try:
            self.session = onnxruntime.InferenceSession(path, options, providers=present(providers))
        except Exception as error:  # ONNX Runtime's errors have no common class
            reason = str(error).strip().splitlines()[0]
            raise UserError(
                f"{path}: ONNX Runtime does not load it: {reason}\n"
                f"  export it again, for a {option_name('target')} and in a {option_name('precision')} that this machine runs"
            ) from error
        self.load_seconds = time.perf_counter() - begun
        self.provider: str = self.session.get_providers()[0]
        self.device = "cpu" if self.provider == CPU else "cuda"
        self.inputs = {slot.name: slot for slot in map(_slot, self.session.get_inputs())}
        self.outputs = {slot.name: slot for slot in map(_slot, self.session.get_outputs())}

    def binding(self) -> Any:
        """A new binding of the session's inputs and outputs."""
        return self.session.io_binding()

    def run(self, given: Mapping[str, Ids], wanted: Mapping[str, str]) -> dict[str, OrtValue]:
        """The outputs that are wanted, by the device on which they are."""
        binding = self.binding()
        for name, array in given.items():
            binding.bind_cpu_input(name, array)
        for name, device in wanted.items():
            binding.bind_output(name, device)
        self.session.run_with_iobinding(binding)
        return dict(zip(wanted, binding.get_outputs(), strict=True))


def _slot(value: Any) -> Slot:
    element, width = _ELEMENTS[value.type]
    return Slot(value.name, element, width, tuple(value.shape))


def host_array(value: OrtValue) -> NDArray[Any]:
    """A view of a tensor on the CPU; bfloat16 as the float32 it is the upper half of, which is a copy."""
    if value.element_type() != BFLOAT16:
        return np.from_dlpack(value)
    shape = tuple(value.shape())
    halves = (ctypes.c_uint16 * int(np.prod(shape))).from_address(value.data_ptr())
    return (np.ctypeslib.as_array(halves).astype(np.uint32) << 16).view(np.float32).reshape(shape)
