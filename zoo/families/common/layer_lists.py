"""Fields that list layers: their kinds, numbers or flags, and the layers of configs without a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from specs.base.suggest import suggestion
from zoo.families.common.config import Config
from zoo.families.common.fields import Positive
from zoo.families.common.template import read

FULL, SLIDING, LINEAR = "full_attention", "sliding_attention", "linear_attention"
"""Kinds of layers in ``layer_types``; the state of the last does not grow."""

_OLD_WORDS = {"mamba": LINEAR, "attention": FULL}
"""Words of earlier configs, which transformers reads as today's in the config of every family."""

WhereFunction = Callable[[Config, int], list[bool]]
"""Says of each layer whether something holds, from the config and the number of layers."""


def read_layer_types(config: Config, default: list[bool]) -> list[bool]:
    """Which layers have a window."""
    kinds = read_kinds(config, "layer_types", len(default), (FULL, SLIDING))
    return default if kinds is None else [kind == SLIDING for kind in kinds]


def read_kinds(config: Config, name: str, depth: int, words: Sequence[str]) -> list[str] | None:
    """The words for all layers, of earlier configs as today's; None where the config has no list."""
    entries = config.list(name)
    if entries is None:
        return None
    if len(entries) != depth:
        config.refuse_entries(name, depth)
    kinds = [_OLD_WORDS.get(word, word) for word in map(str, entries)]
    for kind in kinds:
        if kind not in words:
            config.refuse(name, "must have supported kinds only", suggestion(kind, words))
    return kinds


def all_but_every_fourth(config: Config, depth: int) -> list[bool]:
    """Windows in all layers except every n-th, by default the fourth: the usual ones of configs without ``layer_types``."""
    name = "sliding_window_pattern"
    if config.has("layer_types"):
        config.ignore(name)  # which may be text, such as LLLG
        return [False] * depth
    return all_but_every(Positive(name, default=4))(config, depth)


def all_but_every(count: int | Positive, first: int | None = None) -> WhereFunction:
    """All layers except every n-th, by default the last of each n; ``first`` is the first of those, and ``count`` n, or its field."""

    def where(config: Config, depth: int) -> list[bool]:
        every: int = read(count, config)
        start = every - 1 if first is None else first
        return [layer % every != start % every for layer in range(depth)]

    return where


def no_layer(config: Config, depth: int) -> list[bool]:
    """No layer."""
    return [False] * depth


def read_numbers(config: Config, name: str, default: Sequence[int] | None = None) -> list[int] | None:
    """The layers that a list names by number, from 0."""
    numbers: list[int] | None = config.list(name, default=default)
    if numbers is not None and not all(type(layer) is int for layer in numbers):
        config.refuse(name, "must be a list of layers by number, from 0")
    return numbers


def read_flags(config: Config, name: str, depth: int) -> list[bool] | None:
    """The layers to which a list gives 1; None for a config without it."""
    flags = config.list(name)
    if flags is None:
        return None
    if len(flags) != depth or not all(type(flag) is int and flag in (0, 1) for flag in flags):
        config.refuse(name, f"must be 0 or 1 for each of the {depth} layers")
    return [flag == 1 for flag in flags]
