"""A graph loaded in ONNX Runtime, with its inputs and outputs."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnxruntime import OrtValue

from exporters.target.providers import device_of
from exporters.target.session_options import open_session, session_options
from specs.base.errors import UserError, option_name, reason_of

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]

BFLOAT16 = 16
"""ONNX's code of bfloat16, which numpy lacks."""

_ELEMENTS = {
    "tensor(float)": (1, 4),
    "tensor(uint8)": (2, 1),
    "tensor(int8)": (3, 1),
    "tensor(int32)": (6, 4),
    "tensor(int64)": (7, 8),
    "tensor(bool)": (9, 1),
    "tensor(float16)": (10, 2),
    "tensor(bfloat16)": (BFLOAT16, 2),
}
"""ONNX's code and the size in bytes of each element type of inputs and outputs."""


@dataclass(frozen=True)
class GraphTensor:
    """An input or output: ONNX's code of its element type, the bytes of one element, and its dims, some of them
    named."""

    name: str
    element: int
    width: int
    dims: tuple[int | str, ...]


class LoadedGraph:
    """An ONNX file loaded in a session, with an adapter switched on if one is given.

    The threads of a session that runs ``in_turn`` with another stop after each call: spinning, they would take its cores.
    Raises :class:`specs.base.errors.UserError` if ONNX Runtime cannot load it.
    """

    def __init__(
        self,
        path: Path,
        providers: tuple[str, ...],
        threads: int = 0,
        adapter: Path | None = None,
        *,
        in_turn: bool = False,
    ) -> None:
        options = session_options(path)
        options.intra_op_num_threads = threads
        if in_turn:
            options.add_session_config_entry("session.force_spinning_stop", "1")
        begun = time.perf_counter()
        try:
            self.session = open_session(path, options, providers)
        except UserError:
            raise
        except Exception as error:  # ONNX Runtime's errors have no common class
            reason = reason_of(error)
            raise UserError(
                f"{path}: ONNX Runtime cannot load it: {reason}\n"
                f"  Export the model again for a {option_name('target')} and in a {option_name('precision')} that this machine supports."
            ) from error
        self.load_seconds = time.perf_counter() - begun
        self.provider: str = self.session.get_providers()[0]
        self.device = device_of(self.provider)
        self.inputs = {slot.name: slot for slot in map(_slot, self.session.get_inputs())}
        self.outputs = {slot.name: slot for slot in map(_slot, self.session.get_outputs())}
        self._adapter = {} if adapter is None else self._matrices(adapter)

    def _matrices(self, adapter: Path) -> dict[str, OrtValue]:
        """The matrices of an adapter that this graph takes.  ONNX Runtime does not apply adapters to bound inputs itself."""
        from onnxruntime import AdapterFormat

        taken = {value.name for value in self.session.get_overridable_initializers()}
        held = AdapterFormat.read_adapter(str(adapter)).get_parameters()
        return {name: value for name, value in held.items() if name in taken}

    def binding(self) -> Any:
        """A new binding of the session's inputs and outputs, with the matrices of the adapter bound."""
        binding = self.session.io_binding()
        for name, value in self._adapter.items():
            binding.bind_ortvalue_input(name, value)
        return binding

    def run(self, inputs: Mapping[str, Ids | Floats], wanted: Mapping[str, str]) -> dict[str, OrtValue]:
        """The requested outputs, each on the requested device."""
        binding = self.binding()
        for name, array in inputs.items():
            binding.bind_cpu_input(name, array)
        for name, device in wanted.items():
            binding.bind_output(name, device)
        self.session.run_with_iobinding(binding)
        return dict(zip(wanted, binding.get_outputs(), strict=True))


def _slot(value: Any) -> GraphTensor:
    element, width = _ELEMENTS[value.type]
    return GraphTensor(value.name, element, width, tuple(value.shape))


def host_array(value: OrtValue) -> NDArray[Any]:
    """A view of a tensor on the CPU; bfloat16 is copied to float32."""
    if value.element_type() != BFLOAT16:
        return np.from_dlpack(value)
    shape = tuple(value.shape())
    halves = (ctypes.c_uint16 * int(np.prod(shape))).from_address(value.data_ptr())
    return (np.ctypeslib.as_array(halves).astype(np.uint32) << 16).view(np.float32).reshape(shape)
