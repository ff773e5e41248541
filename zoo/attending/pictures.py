"""Attention as grids of heat maps, to be drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from zoo.attending.attend import Attended, Reader, looked_at, looks
from zoo.attending.choice import StackName
from zoo.pictures.heat_map import Grid, HeatMap

ACROSS = 4
"""Maps in a line, where lines are not layers."""

MOST = 256
"""The most maps that are drawn one by one: of more, the mean over the heads of each layer."""

SINK = "sink"
"""The label of the weight that goes to no token."""

TITLES: dict[StackName, str] = {
    "encoder": "encoder",
    "decoder": "decoder",
    "cross": "decoder to encoder",
}


def grids(attended: Attended, name: str, labels: Mapping[Reader, Sequence[str]], *, mean: bool) -> list[Grid]:
    """A grid for each stack of the model called ``name``: a line for each layer with a map for each head, or their means.

    More than :data:`MOST` maps are means, whatever was asked.
    ``labels`` are those of the tokens of the encoder and of the decoder.
    """
    found = []
    mean = mean or sum(len(each.heads) for maps in attended.maps.values() for each in maps) > MOST
    for stack, maps in attended.maps.items():
        views = [view for each in maps for view in each.views(mean=mean)]
        columns = [*labels[looked_at(stack)], *([SINK] * maps[0].sink)]
        across = max(len(each.heads) for each in maps) if len(maps) > 1 and not mean else ACROSS
        shown = [HeatMap(view.title, view.shares.numpy().astype(np.float32), view.spread) for view in views]
        title = f"{name}: {TITLES[stack]}"
        found.append(Grid(title, labels[looks(stack)], columns, shown, across))
    return found
