"""The modules of a sentence-transformers directory, in the order of ``modules.json``."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zoo.files.json_values import read_list
from zoo.weights.source import WeightError

MODULES = "modules.json"
DENSE = "Dense"
LOGIT_SCORE = "LogitScore"
DENSE_PLACES = (f"1_{DENSE}", f"2_{DENSE}", f"3_{DENSE}")
"""The directories of the Dense modules by their place in the list: after Transformer, or after Transformer and Pooling, where a
tensor of the first is ``2_Dense.linear.weight``."""

SIDE_LAYERS = ("colbert_linear", "sparse_linear")
"""The layers of the further heads of BGE-M3, each in a file of its own, ``colbert_linear.pt``, beside the body's."""

_TYPE = re.compile(r"(?:sentence_transformers|pylate)\.(?:\w+\.)*(\w+)")
_PATH = re.compile(r"[\w.-]*")


@dataclass(frozen=True)
class Module:
    """A module: the name of its class in sentence-transformers, or its full type for another library, and its
    directory."""

    kind: str
    directory: Path


def modules_in(directory: Path) -> list[Module]:
    """The modules of a directory; empty where there is no ``modules.json``.

    Raises :class:`WeightError` where the list is damaged, or names a path outside the directory.
    """
    index = directory / MODULES
    if not os.path.lexists(index):
        return []
    return [_module(index, entry) for entry in read_list(index, WeightError, directory)]


def _module(index: Path, entry: Any) -> Module:
    match entry:
        case {"type": str(kind), "path": str(path)} if _is_next_to(index, path):
            known = _TYPE.fullmatch(kind)
            return Module(known[1] if known else kind, index.parent / path)
    raise WeightError(
        f"{index}: each module must have a type, and a path that is empty or a directory next to it"
    )


def _is_next_to(index: Path, path: str) -> bool:
    """Whether a path is empty or names a directory next to the list, and is no link to another place."""
    plain = _PATH.fullmatch(path) and path not in (".", "..")
    return bool(plain) and not (path and (index.parent / path).is_symlink())


def dense_modules(directory: Path) -> dict[str, Path]:
    """The directories of the Dense modules, in order, by the prefixes of their tensors."""
    modules = enumerate(modules_in(directory))
    return {f"{index}_{DENSE}": module.directory for index, module in modules if module.kind == DENSE}


def side_layers(directory: Path) -> dict[str, Path]:
    """The files of further heads beside the body's, by the prefixes of their tensors; all of them, or none."""
    files = {name: directory / f"{name}.pt" for name in SIDE_LAYERS}
    return files if all(os.path.lexists(path) for path in files.values()) else {}


def split_name(tensor: str) -> tuple[str, str]:
    """The directory or further head of a stored tensor, empty for the body, and the tensor's name there."""
    module, _, name = tensor.partition(".")
    return (module, name) if module in (*DENSE_PLACES, *SIDE_LAYERS) else ("", tensor)
