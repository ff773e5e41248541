"""Output of ``zoo attend``: maps as they grow, entropies of heads, and JSON."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from cli.attend_maps import LONGEST, Panel, Row, fitting, legend, print_maps
from cli.render import Column, console, print_json, print_table, say
from specs.printable import printable
from zoo.attention_maps.attend import Attended, AttentionStep, Reader, looked_at, looks
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

    ``places`` is the maximum number of tokens of each reader.
    """

    text: TextTokenizer | None
    mean: bool
    ends: bool
    places: Mapping[Reader, int]

    def label(self, token: int) -> str:
        """The printable text of a token, or its id."""
        return printable(self.token(token))

    def token(self, token: int) -> str:
        """The text of a token, or its id."""
        return str(token) if self.text is None else self.text.label(token)

    def words(self, ids: Sequence[int]) -> str:
        """Tokens as text, or as comma-separated ids."""
        return ",".join(map(str, ids)) if self.text is None else self.text.text(ids)

    def labels(self, attended: Attended) -> dict[Reader, list[str]]:
        """The labels of all tokens by reader."""
        return {reader: [self.label(token) for token in ids] for reader, ids in attended.ids.items()}


def print_growing(shown: MapStyle, steps: Iterator[AttentionStep], choice: AttentionChoice) -> Attended:
    """Print the maps while the model runs, and return what it attended to."""
    out, taken = console(), list[AttentionStep]()
    for first in steps:
        rest = steps if first.reader == "decoder" else iter(())  # an encoder reads all at once
        _print_read(out, shown, choice, taken, itertools.chain([first], rest), first)
    out.print(legend(out))
    out.print()
    attended = Attended.of(taken)
    if attended.written:
        say(f"generated: {shown.words(attended.written)}\n")
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
    longest = max(cell_len(shown.label(token)) for token in first.ids)
    panels = [_panel(shown, view, choice) for view in views]
    most = None
    if shown.places[first.reader] > len(first.ids):  # labels of generated tokens are not known yet
        longest = max(longest, ID_DIGITS if shown.text is None else LONGEST)
    elif max(panel.places for panel in panels) > fitting(out, longest):
        most = fitting(out, longest)
    print_maps(out, panels, rows(), labels, longest, most)


def _views(shown: MapStyle, step: AttentionStep, choice: AttentionChoice) -> list[HeadMap]:
    """The views of a step, one per panel."""
    maps: list[LayerMap] = sorted(
        step.maps, key=lambda each: each.stack != step.reader
    )  # its own tokens first
    if shown.ends:
        ends = {stack: (layers[0], layers[-1]) for stack, layers in choice.layers.items()}
        maps = [each for each in maps if each.layer in ends[each.stack]]
    return [view for each in maps for view in each.views(mean=shown.mean or shown.ends)]


def _panel(shown: MapStyle, view: HeadMap, choice: AttentionChoice) -> Panel:
    layer = view.layer
    title = f"{layer.stack} {view.title}" if len(choice.layers) > 1 else view.title
    return Panel(title, shown.places[looked_at(layer.stack)] + layer.sink)


def _rows(shown: MapStyle, step: AttentionStep, choice: AttentionChoice) -> Iterator[Row]:
    tables = [_shares(shown, view) for view in _views(shown, step, choice)]
    for place, token in enumerate(step.ids):
        yield shown.label(token), [table[place] for table in tables]


def _shares(shown: MapStyle, view: HeadMap) -> list[list[float | None]]:
    """The weights of a view, with None for masked or future keys, inserted before the sink."""
    own = [[None if share != share else share for share in row] for row in view.shares.tolist()]
    missing = shown.places[looked_at(view.layer.stack)] + view.layer.sink - view.weights.shape[-1]
    at = view.weights.shape[-1] - view.layer.sink
    return [[*row[:at], *([None] * missing), *row[at:]] for row in own]


def print_entropies(attended: Attended) -> None:
    """Print the entropy of each head in bits."""
    say("Entropy of each head in bits, mean over query tokens; uniform is the entropy of equal weights.")
    for stack, maps in attended.maps.items():
        say()
        if max(len(each.heads) for each in maps) <= _HEADS:
            numbers = list(dict.fromkeys(number for each in maps for number in each.heads))
            header = [TITLES[stack], *map(str, numbers), "uniform"]
            rows = [_entropies(each, numbers) for each in maps]
        else:
            header = [TITLES[stack], "heads", "least", "mean", "most", "uniform"]
            rows = [_summary(each) for each in maps]
        ends = {header[0], header[-1]}
        print_table([Column(name, right=name != header[0], pinned=name in ends) for name in header], rows)


def _entropies(layer: LayerMap, numbers: Sequence[int]) -> list[str]:
    of = dict(zip(layer.heads, layer.entropy, strict=True))
    cells = [f"{of[number]:.2f}" if number in of else "" for number in numbers]
    return [f"layer {layer.layer}", *cells, f"{layer.uniform_entropy:.2f}"]


def _summary(layer: LayerMap) -> list[str]:
    found = layer.entropy
    ends = [min(found), sum(found) / len(found), max(found), layer.uniform_entropy]
    return [f"layer {layer.layer}", str(len(found)), *(f"{value:.2f}" for value in ends)]


def print_data(shown: MapStyle, attended: Attended, facts: Mapping[str, Any]) -> None:
    """Print tokens, weights of each head and entropies in bits as JSON."""
    tokens = {
        reader: [{"id": token, "token": shown.token(token)} for token in ids]
        for reader, ids in attended.ids.items()
    }
    stacks = {
        stack: {
            "queries": looks(stack),
            "keys": looked_at(stack),
            "sink": maps[0].sink,
            "layers": [_layer_data(each) for each in maps],
        }
        for stack, maps in attended.maps.items()
    }
    print_json({**facts, "tokens": tokens, "written_ids": attended.written, "attention": stacks})


def _layer_data(layer: LayerMap) -> dict[str, Any]:
    heads = [
        {"head": number, "entropy": entropy, "weights": [[round(w, 6) for w in row] for row in weights]}
        for number, entropy, weights in zip(layer.heads, layer.entropy, layer.weights.tolist(), strict=True)
    ]
    return {"layer": layer.layer, "uniform_entropy": layer.uniform_entropy, "heads": heads}
