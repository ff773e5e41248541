"""The origins of a variant's tensors as a table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zoo.adapting.adapt import Adaptation
    from zoo.adapting.plan import Origin

_LAYER = re.compile(r"(?<=\.blocks\.)(\d+)(?=\.)")


def print_adaptation(written: Adaptation, destination: Path) -> None:
    """Print the origin of every tensor, tensors of layers with equal rules in one row, and how to load the checkpoint."""
    from cli.terminal.render import print_table, say

    print_table(["tensor", "layers", "from", "of layers", "rule"], origin_rows(written.plan.origins))
    origins = written.plan.origins
    derived = sum(origin.rule is not None for origin in origins)
    say(f"\n{derived} of {len(origins)} tensors derived, {len(origins) - derived} without a counterpart")
    if written.plan.unused:
        say("Unused tensors of the checkpoint:")
        for name, layers in _folded_names(written.plan.unused):
            say(f"  {name}{f' of layers {layers}' if layers else ''}")
    made = written.conversion
    loader = (
        f'zoo.build("{destination}/spec.yaml", "{destination}")'
        if made.class_name is None
        else f'transformers.{made.class_name}.from_pretrained("{destination}")'
    )
    say(
        f"\n{destination}: {made.parameters:,} parameters in {made.dtype} from {made.weights}\n{loader}"
        + ("" if made.class_name else "\nNo family of transformers can express this spec: no config.json.")
    )


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
