"""Output of ``zoo attend``: maps as they grow, entropies of heads, and JSON."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from cli.attending.maps import LONGEST, Panel, Row, fitting, legend, print_maps
from cli.terminal.render import Column, console, print_json, print_table, say
from specs.base.printable import printable
from specs.model.stack import STACKS
from zoo.attention_maps.attend import Attended, AttentionStep
from zoo.attention_maps.choice import Reader, looked_at, looks
from zoo.attention_maps.patches import PatchImage, patch_maps
from zoo.attention_maps.pictures import SINK, TITLES

if TYPE_CHECKING:
    from rich.console import Console

    from exporters.runtime.text import TextTokenizer
    from zoo.attention_maps.choice import AttentionChoice
    from zoo.attention_maps.maps import HeadMap, LayerMap

ID_DIGITS = 6
"""Width of a token id."""

_HEADS = 16
"""Maximum number of heads printed side by side."""


@dataclass(frozen=True)
class MapStyle:
    """How maps are shown: the mean over heads or each head; ``ends`` limits a terminal to the first and last layer.

    ``places`` is the maximum number of tokens, patches or frames of each reader; attention to the patches of ``images`` is
    shown as grids.
    """

    text: TextTokenizer | None
    mean: bool
    ends: bool
    places: Mapping[Reader, int]
    images: Mapping[Reader, PatchImage]

    def label(self, token: int) -> str:
        """The printable text of a token, or its id."""
        return printable(self.token(token))

    def token(self, token: int) -> str:
        """The text of a token, or its id."""
        return str(token) if self.text is None else self.text.label(token)

    def words(self, ids: Sequence[int]) -> str:
        """Tokens as text, or as comma-separated ids."""
        return ",".join(map(str, ids)) if self.text is None else self.text.text(ids)

    def step_labels(self, step: AttentionStep) -> list[str]:
        """The labels of what a step reads."""
        return [*step.names, *map(self.label, step.ids)]

    def labels(self, attended: Attended) -> dict[Reader, list[str]]:
        """The labels of all tokens, patches and frames by reader."""
        tokens = {reader: [self.label(token) for token in ids] for reader, ids in attended.ids.items()}
        names = {**attended.names, **tokens}
        return {reader: names[reader] for reader in STACKS if reader in names}


def print_growing(shown: MapStyle, steps: Iterator[AttentionStep], choice: AttentionChoice) -> Attended:
    """Print the maps while the model runs, and return what it attended to."""
    out, taken = console(), list[AttentionStep]()
    for first in steps:
        rest = steps if first.reader == "decoder" else iter(())  # an encoder reads all at once
        _print_read(out, shown, choice, taken, itertools.chain([first], rest), first)
    if any(looked_at(stack) not in shown.images for stack in choice.layers):
        out.print(legend(out))
    _print_patches(out, shown, choice, taken)
    attended = Attended.of(taken)
    if attended.written:
        say(f"\ngenerated: {shown.words(attended.written)}")
    return attended


def _print_read(
    out: Console,
    shown: MapStyle,
    choice: AttentionChoice,
    taken: list[AttentionStep],
    steps: Iterator[AttentionStep],
    first: AttentionStep,
) -> None:
    """Print the maps of one reader, and append its steps to those taken."""
    views = _views(shown, first, choice)

    def rows() -> Iterator[Row]:
        for step in steps:
            taken.append(step)
            yield from _rows(shown, step, choice)

    def labels() -> list[list[str]]:
        known = shown.labels(Attended.of(taken))
        return [[*known[looked_at(view.layer.stack)], *([SINK] * view.layer.sink)] for view in views]

    if not views:
        taken.extend(steps)
        return
    longest = max(map(cell_len, shown.step_labels(first)))
    panels = [_panel(shown, view, choice) for view in views]
    most = None
    if shown.places[first.reader] > len(first.names or first.ids):  # generated tokens are not known yet
        longest = max(longest, ID_DIGITS if shown.text is None else LONGEST)
    elif max(panel.places for panel in panels) > fitting(out, longest):
        most = fitting(out, longest)
    print_maps(out, panels, rows(), labels, longest, most)


def _print_patches(
    out: Console, shown: MapStyle, choice: AttentionChoice, taken: Sequence[AttentionStep]
) -> None:
    """Print attention to patches as grids: with ``ends`` of the first and last layer, of a decoder of the last."""
    attended = Attended.of(taken)
    labels = shown.labels(attended)
    for stack, maps in attended.maps.items():
        image = shown.images.get(looked_at(stack))
        if image is None:
            continue
        if shown.ends:
            maps = maps[-1:] if stack == "cross" or len(maps) == 1 else [maps[0], maps[-1]]
        shown_patches = [
            patches
            for layer in maps
            for patches in patch_maps(layer, image, labels[looks(stack)], mean=shown.mean or shown.ends)
        ]
        columns = [f"c{column}" for column in range(image.columns)]
        panels = [
            Panel(f"{_title(patches.view, choice)}, {patches.note}", image.columns)
            for patches in shown_patches
        ]
        rows = [
            (f"r{row}", [patches.shares[row].tolist() for patches in shown_patches])
            for row in range(image.rows)
        ]
        print_maps(out, panels, rows, lambda: [columns] * len(shown_patches), len(f"r{image.rows}"))  # noqa: B023
        out.print(legend(out, "the largest weight of a patch in each map", masked=""))


def _views(shown: MapStyle, step: AttentionStep, choice: AttentionChoice) -> list[HeadMap]:
    """The views of a step, one per panel, except views of patches."""
    maps: list[LayerMap] = sorted(
        (layer for layer in step.maps if looked_at(layer.stack) not in shown.images),
        key=lambda layer: layer.stack != step.reader,
    )  # its own tokens first
    if shown.ends:
        ends = {stack: (layers[0], layers[-1]) for stack, layers in choice.layers.items()}
        maps = [layer for layer in maps if layer.layer in ends[layer.stack]]
    return [view for layer in maps for view in layer.views(mean=shown.mean or shown.ends)]


def _panel(shown: MapStyle, view: HeadMap, choice: AttentionChoice) -> Panel:
    layer = view.layer
    return Panel(_title(view, choice), shown.places[looked_at(layer.stack)] + layer.sink)


def _title(view: HeadMap, choice: AttentionChoice) -> str:
    return f"{view.layer.stack} {view.title}" if len(choice.layers) > 1 else view.title


def _rows(shown: MapStyle, step: AttentionStep, choice: AttentionChoice) -> Iterator[Row]:
    tables = [_shares(shown, view) for view in _views(shown, step, choice)]
    for row, label in enumerate(shown.step_labels(step)):
        yield label, [table[row] for table in tables]


def _shares(shown: MapStyle, view: HeadMap) -> list[list[float | None]]:
    """The weights of a view, with None for masked or future keys, inserted before the sink."""
    own = [[None if share != share else share for share in row] for row in view.shares.tolist()]
    missing = shown.places[looked_at(view.layer.stack)] + view.layer.sink - view.weights.shape[-1]
    tokens = view.weights.shape[-1] - view.layer.sink
    return [[*row[:tokens], *([None] * missing), *row[tokens:]] for row in own]


def print_entropies(attended: Attended) -> None:
    """Print the entropy of each head in bits."""
    say("\nEntropy of each head in bits, mean over query tokens; uniform is the entropy of equal weights.")
    for stack, maps in attended.maps.items():
        say()
        if max(len(layer.heads) for layer in maps) <= _HEADS:
            numbers = list(dict.fromkeys(number for layer in maps for number in layer.heads))
            header = [TITLES[stack], *map(str, numbers), "uniform"]
            rows = [_entropies(layer, numbers) for layer in maps]
        else:
            header = [TITLES[stack], "heads", "least", "mean", "most", "uniform"]
            rows = [_summary(layer) for layer in maps]
        ends = {header[0], header[-1]}
        print_table([Column(name, right=name != header[0], pinned=name in ends) for name in header], rows)


def _entropies(layer: LayerMap, numbers: Sequence[int]) -> list[str]:
    of = dict(zip(layer.heads, layer.entropy, strict=True))
    cells = [f"{of[number]:.2f}" if number in of else "" for number in numbers]
    return [f"layer {layer.layer}", *cells, f"{layer.uniform_entropy:.2f}"]


def _summary(layer: LayerMap) -> list[str]:
    entropies = layer.entropy
    ends = [min(entropies), sum(entropies) / len(entropies), max(entropies), layer.uniform_entropy]
    return [f"layer {layer.layer}", str(len(entropies)), *(f"{value:.2f}" for value in ends)]


def print_data(shown: MapStyle, attended: Attended, facts: Mapping[str, Any]) -> None:
    """Print tokens, patches or frames, weights of each head and entropies in bits as JSON."""
    tokens: dict[str, Any] = {
        reader: [{"id": token, "token": shown.token(token)} for token in ids]
        for reader, ids in attended.ids.items()
    }
    names: dict[str, Any] = {
        reader: [{"name": name} for name in names] for reader, names in attended.names.items()
    }
    stacks = {
        stack: {
            "queries": looks(stack),
            "keys": looked_at(stack),
            "sink": maps[0].sink,
            "layers": [_layer_data(layer) for layer in maps],
        }
        for stack, maps in attended.maps.items()
    }
    grids = {reader: {"rows": image.rows, "columns": image.columns} for reader, image in shown.images.items()}
    read: dict[str, Any] = {"tokens": {**names, **tokens}, "patches": grids, "written_ids": attended.written}
    print_json({**facts, **read, "attention": stacks})


def _layer_data(layer: LayerMap) -> dict[str, Any]:
    heads = [
        {"head": number, "entropy": entropy, "weights": [[round(w, 6) for w in row] for row in weights]}
        for number, entropy, weights in zip(layer.heads, layer.entropy, layer.weights.tolist(), strict=True)
    ]
    return {"layer": layer.layer, "uniform_entropy": layer.uniform_entropy, "heads": heads}
