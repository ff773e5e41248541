"""Attention maps as grids of heat maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from zoo.attention_maps.attend import Attended, Reader, looked_at, looks
from zoo.attention_maps.choice import StackName
from zoo.pictures.heat_map import HeatMap, HeatMapGrid

ACROSS = 4
"""Maps per row, if rows are not layers."""

MOST = 256
"""Above this number of maps, the mean over the heads of each layer is drawn."""

SINK = "sink"
"""The label of the attention sink."""

TITLES: dict[StackName, str] = {
    "encoder": "encoder",
    "decoder": "decoder",
    "cross": "decoder to encoder",
}


def grids(
    attended: Attended, name: str, labels: Mapping[Reader, Sequence[str]], *, mean: bool
) -> list[HeatMapGrid]:
    """One grid per stack of the model called ``name``: one row per layer with a map per head, or the means of layers.

    Above :data:`MOST` maps, means are drawn in any case.  ``labels``: the tokens of the encoder and of the decoder.
    """
    found = []
    mean = mean or sum(len(each.heads) for maps in attended.maps.values() for each in maps) > MOST
    for stack, maps in attended.maps.items():
        views = [view for each in maps for view in each.views(mean=mean)]
        columns = [*labels[looked_at(stack)], *([SINK] * maps[0].sink)]
        across = max(len(each.heads) for each in maps) if len(maps) > 1 and not mean else ACROSS
        shown = [HeatMap(view.title, view.shares.numpy().astype(np.float32), view.spread) for view in views]
        title = f"{name}: {TITLES[stack]}"
        found.append(HeatMapGrid(title, labels[looks(stack)], columns, shown, across))
    return found
