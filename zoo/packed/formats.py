"""The quantized formats of Hugging Face checkpoints: one table, by the ``quant_method`` of config.json."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from specs.base.suggest import suggestion
from zoo.files.json_values import read_object
from zoo.packed.awq import read_awq
from zoo.packed.compressed import read_compressed
from zoo.packed.gptq import read_gptq
from zoo.packed.modelopt import read_modelopt
from zoo.packed.mxfp4 import read_mxfp4
from zoo.packed.scaled import read_scaled
from zoo.weights.files import TensorFiles
from zoo.weights.gguf import GgufTensor
from zoo.weights.source import WeightError
from zoo.weights.stored import StoredTensor

Read = Callable[
    [Mapping[str, StoredTensor], Mapping[str, Any], str], Iterator[tuple[str, StoredTensor | None]]
]
"""Takes the tensors of a checkpoint, its quantization_config and its path; returns new tensors by name, or None for
consumed ones."""

READERS: dict[str, Read] = {
    "gptq": read_gptq,
    "awq": read_awq,
    "compressed-tensors": read_compressed,
    "fp8": read_scaled,
    "fbgemm_fp8": read_scaled,
    "mxfp4": read_mxfp4,
    "modelopt": read_modelopt,
}

_CODES = ("F8_E4M3", "F8_E5M2", "I8", "U8")
"""The dtypes of matrices that need scales."""


def unpacked_files(files: TensorFiles) -> TensorFiles:
    """The tensors of a checkpoint under the names of a float one, where the config in its directory says that it is
    quantized.

    Raises :class:`WeightError` for an unsupported quantization method, and for tensors that do not fit together.
    """
    directory = files.path if files.path.is_dir() else files.path.parent
    if any(isinstance(stored, GgufTensor) for stored in files.tensors.values()):
        return files
    config, where = _quantization(directory)
    if config is None:
        return files
    method = method_of(config, where)
    tensors: dict[str, StoredTensor | None] = dict(files.tensors)
    for name, stored in READERS[method](files.tensors, config, where):
        tensors[name] = stored
    kept = {name: stored for name, stored in tensors.items() if stored is not None}
    for name, stored in kept.items():
        if name.endswith(".weight") and stored.kind in _CODES:
            raise WeightError(
                f"{stored.path}: {name} is {stored.kind} without scales\n  Download the checkpoint again, or use it in BF16."
            )
    return dataclasses.replace(files, tensors=kept)


def _quantization(directory: Path) -> tuple[Any, str]:
    """The quantization_config of a checkpoint, and the file that states it: Model Optimizer may have a file of its own."""
    config_file, own = directory / "config.json", directory / "hf_quant_config.json"
    if os.path.lexists(config_file):
        config = read_object(config_file, WeightError, directory).get("quantization_config")
        if config is not None:
            return config, str(config_file)
    if os.path.lexists(own):
        return {"quant_method": "modelopt", **read_object(own, WeightError, directory)}, str(own)
    return None, ""


def method_of(config: Any, where: str) -> str:
    """The quantization method of a quantization_config. Raises :class:`WeightError` for an unsupported one."""
    method = config.get("quant_method") if isinstance(config, dict) else None
    if not isinstance(method, str) or method not in READERS:
        remedy = suggestion(str(method), READERS)
        raise WeightError(
            f"{where}: quantization_config.quant_method: is not supported\n  value: {method!r}\n  {remedy}\n"
            "  Or use the checkpoint in BF16 or F16."
        )
    return method
