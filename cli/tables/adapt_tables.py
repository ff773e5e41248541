"""The origins of a variant's tensors as a table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from cli.terminal.screen import Screen, doubtful

if TYPE_CHECKING:
    from zoo.adapting.adapt import Adaptation
    from zoo.adapting.plan import Origin

_LISTED = 3
"""Number of rules and of tensors without a counterpart that are listed."""

_LAYER = re.compile(r"(?<=\.blocks\.)(\d+)(?=\.)")


def print_adaptation(written: Adaptation) -> None:
    """Print the origin of every tensor, tensors of layers with equal rules in one row, and the unused tensors."""
    from cli.terminal.render import print_table, say

    print_table(["tensor", "layers", "from", "of layers", "rule"], origin_rows(written.plan.origins))
    say()
    if written.plan.unused:
        say("Unused tensors of the checkpoint:")
        for name, layers in _folded_names(written.plan.unused):
            say(f"  {name}{f' of layers {layers}' if layers else ''}")
        say()


def adaptation_rows(screen: Screen, written: Adaptation) -> None:
    """Print how many tensors come from the checkpoint, by which rules, and which do not."""
    origins = written.plan.origins
    drawn = [origin for origin in origins if origin.rule is None]
    rules = Counter(origin.text for origin in origins if origin.rule is not None)
    screen.fact(
        "tensors",
        f"{len(origins) - len(drawn)} of {len(origins)} derived from the checkpoint",
        *(f"{count} {rule}" for rule, count in rules.most_common(_LISTED)),
    )
    if drawn:
        names = ", ".join(dict.fromkeys(_LAYER.sub("*", origin.tensor) for origin in drawn[:_LISTED]))
        more = ", ..." if len(drawn) > _LISTED else ""
        screen.fact("drawn", (doubtful(f"{len(drawn)} without a counterpart"), f": {names}{more}"))
    if unused := len(written.plan.unused):
        screen.fact("unused", f"{unused} tensors of the checkpoint")


def origin_rows(origins: Iterable[Origin]) -> list[tuple[str, str, str, str, str]]:
    """Rows of tensor, its layers, tensor of the source, its layers, and rule."""
    groups: dict[tuple[str, str, str], list[Origin]] = {}
    for origin in origins:
        stored = origin.sources[0] if origin.sources else ""
        key = (_LAYER.sub("*", origin.tensor), _LAYER.sub("*", stored), origin.text)
        groups.setdefault(key, []).append(origin)
    rows = []
    for (tensor, stored, text), group in groups.items():
        ours = [_layer(origin.tensor) for origin in group]
        theirs = ["+".join(filter(None, map(_layer, origin.sources))) for origin in group]
        same = "the same" if stored == tensor else stored
        rows.append((tensor, _spans(ours), same if stored else "-", _spans(theirs), text))
    return rows


def _layer(name: str) -> str:
    match = _LAYER.search(name)
    return match[1] if match else ""


def _spans(layers: Iterable[str]) -> str:
    """Layers as text, with runs of numbers as ranges: ``0-23, 8-31``."""
    spans: list[list[str]] = []
    for layer in filter(None, layers):
        follows = (
            spans and layer.isdigit() and spans[-1][-1].isdigit() and int(layer) == int(spans[-1][-1]) + 1
        )
        if follows:
            spans[-1].append(layer)
        else:
            spans.append([layer])
    return ", ".join(span[0] if len(span) == 1 else f"{span[0]}-{span[-1]}" for span in spans)


def _folded_names(names: Iterable[str]) -> list[tuple[str, str]]:
    """Names with ``*`` for the layer, and the layers."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(_LAYER.sub("*", name), []).append(_layer(name))
    return [(name, _spans(layers)) for name, layers in groups.items()]
