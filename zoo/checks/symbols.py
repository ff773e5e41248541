"""Names for sizes: a size in two runs is traced back to the sizes that differed between them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from torch import Tensor

from zoo.models.outputs import Outputs
from zoo.tracing.symbols import SizePair, Symbols

SIZES: dict[str, SizePair] = {"B": (3, 5), "T": (7, 17), "S": (13, 47), "P": (11, 29)}
"""The size of each symbol in the first and the second run: primes, so that no two terms agree in both."""

MEANINGS = {"B": "batch", "T": "tokens", "S": "encoder tokens", "P": "tokens in the cache"}

UNNAMED = "?"


def _terms() -> Symbols:
    total = (SIZES["P"][0] + SIZES["T"][0], SIZES["P"][1] + SIZES["T"][1])
    lengths = {"T": SIZES["T"], "S": SIZES["S"], "P": SIZES["P"], "P+T": total}
    (b1, b2) = SIZES["B"]
    flat = {
        f"B*({name})" if "+" in name else f"B*{name}": (b1 * n1, b2 * n2)
        for name, (n1, n2) in lengths.items()
    }
    return Symbols({"B": SIZES["B"], **lengths, **flat})


TERMS = _terms()


Names = Mapping[str, SizePair]
"""Further names of sizes that a model has."""


def names_of_blocks(length: str, sizes: Iterable[int]) -> dict[str, SizePair]:
    """The numbers of blocks of some sizes in a length, and of tokens and blocks together."""
    names: dict[str, SizePair] = {}
    for size in sizes:
        first, second = (-(-tokens // size) for tokens in SIZES[length])
        names[f"ceil({length}/{size})"] = first, second
        names[f"{length}+ceil({length}/{size})"] = SIZES[length][0] + first, SIZES[length][1] + second
    return names


def name_size(first: int, second: int, further: Names = MappingProxyType({})) -> str:
    """A name for a size from its values in both runs: ``768``, ``T``, ``P+T``, ``B*T``, ``12*B``, ``T+1``,
    ``320*T+80``, ``2*(P+T)-1``, or one of ``further``; or ``?``."""
    if (known := TERMS.name((first, second))) is not None:
        return str(known)
    for name, sizes in further.items():
        if sizes == (first, second):
            return name
    for name, (a, b) in TERMS.values.items():
        if "+" not in name and first * b == second * a and first % a == 0:
            return f"{first // a}*{name}"
    for name, (a, b) in TERMS.values.items():
        if first - a == second - b:
            return f"{name}{first - a:+d}"
    for name in ("T", "S", "P+T"):
        a, b = TERMS.values[name]
        stride, remainder = divmod(second - first, b - a)
        margin = (
            first - stride * a
        )  # the last vector that a convolution makes sees at least one of its inputs
        if not remainder and margin > -stride:
            return f"{stride}*{f'({name})' if '+' in name else name}{margin:+d}"
    return UNNAMED


def shapes_in(value: Any) -> Any:
    """A module's inputs or outputs with each tensor replaced by its shape, and everything else dropped.

    Lists and dicts are kept, with the cache of a model's outputs added; None where there is no tensor.
    """
    if isinstance(value, Tensor):
        return tuple(value.shape)
    if isinstance(value, dict):
        items = {**value, "present": value.present_key_values if isinstance(value, Outputs) else None}
        return {key: shapes for key, item in items.items() if (shapes := shapes_in(item)) is not None}
    if isinstance(value, list | tuple):
        return [shapes for item in value if (shapes := shapes_in(item)) is not None] or None
    return None


def describe(first: Any, second: Any, further: Names = MappingProxyType({})) -> tuple[str, ...]:
    """The parts of a value in symbols, from its shapes in both runs: ``("B x T x 768", "2 x (B x 12 x P+T x 64)")``."""
    if isinstance(first, dict):
        return tuple(f"{key}: {_text(first[key], second[key], further)}" for key in first)
    if isinstance(first, list):
        return tuple(_text(a, b, further) for a, b in zip(first, second, strict=True))
    return () if first is None else (_text(first, second, further),)


def _text(first: Any, second: Any, further: Names) -> str:
    if isinstance(first, tuple):
        return " x ".join(name_size(a, b, further) for a, b in zip(first, second, strict=True)) or "scalar"
    parts = describe(first, second, further)
    if len(set(parts)) > 1 or isinstance(first, dict):
        return f"({', '.join(parts)})"
    if len(parts) == 1:
        return parts[0]
    return f"{len(parts)} x {parts[0]}" if parts[0].endswith(")") else f"{len(parts)} x ({parts[0]})"


def symbols_in(text: str) -> set[str]:
    """The symbols in a text."""
    return set(re.findall(r"(?<![A-Za-z_])[BTSP](?![A-Za-z_])", text))
