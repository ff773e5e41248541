"""Names of tensors without training wrappers, whose modules enclose the model's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from zoo.weights.source import WeightError

_ANYWHERE = re.compile(r"\b(_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)\.")
"""torch.compile, FSDP, and checkpoints of activations; each may wrap parts of a model."""

_AROUND = "module."
"""DataParallel and DistributedDataParallel, which wrap a whole model."""

Stored = TypeVar("Stored")


def without_wrappers(tensors: Mapping[str, Stored], path: Path) -> dict[str, Stored]:
    """The tensors by the names that they have without wrappers.

    Raises :class:`WeightError` where two of them become one.
    """
    names = {name: _ANYWHERE.sub("", name) for name in tensors}
    while names and all(name.startswith(_AROUND) for name in names.values()):
        names = {stored: name.removeprefix(_AROUND) for stored, name in names.items()}
    plain = {name: tensors[stored] for stored, name in names.items()}
    if len(plain) != len(tensors):
        counted = list(names.values())
        twice = [stored for stored, name in names.items() if counted.count(name) > 1]
        raise WeightError(f"{path} has one tensor twice: as {twice[0]} and as {twice[1]}")
    return plain
