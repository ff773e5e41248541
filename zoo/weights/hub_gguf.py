"""Choosing one GGUF file of a repository of the hub."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from zoo.weights.names import SUFFIXES
from zoo.weights.source import WeightError

GGUF = ".gguf"

_PARTS = ("mmproj", "imatrix")
"""The beginnings of the names of files that are no models: image encoders, and statistics for quantization."""

_LISTED = 8


def has_gguf_alone(names: Iterable[str]) -> bool:
    """Whether all weights among the names of files are GGUF files, and there are some."""
    weights = [name for name in names if name.endswith(SUFFIXES)]
    return bool(weights) and all(name.endswith(GGUF) for name in weights)


def chosen_gguf(repository: str, names: Iterable[str], wanted: str = "") -> str:
    """The GGUF file that ``wanted`` names in full or by the end of its name without the suffix, or the only one.

    Raises :class:`WeightError` with the files to choose from.
    """
    models = sorted(name for name in names if name.endswith(GGUF) and not name.startswith(_PARTS))
    ends = tuple(f"{sign}{wanted}{GGUF}".lower() for sign in "-._")
    fits = [name for name in models if not wanted or f"-{name}".lower().endswith(ends)]
    if wanted in models or len(fits) == 1:
        return wanted if wanted in models else fits[0]
    if not models:
        raise WeightError(
            f"{repository} on the hub has no GGUF file of a model\n"
            "  Name another repository, or check the network: without one, only cached files are found."
        )
    has = f"{len(fits)} GGUF files" if fits else "no such GGUF file"
    value = f"\n  value: {wanted}" if wanted else ""
    raise WeightError(f"{repository} on the hub has {has}{value}\n{_choice(repository, fits or models)}")


def _choice(repository: str, names: Sequence[str]) -> str:
    """The remedy: how to name one of the files."""
    end = re.split(r"[-.]", names[0].removesuffix(GGUF))[-1]
    more = [f"    and {len(names) - _LISTED} more"] if len(names) > _LISTED else []
    return "\n".join(
        [
            f"  Name one, by its file or by the end of its name, as in {repository}:{end}",
            *(f"    {repository}/{name}" for name in names[:_LISTED]),
            *more,
        ]
    )
