"""Attention maps as grids of heat maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from zoo.attention_maps.attend import Attended
from zoo.attention_maps.choice import Reader, StackName, looked_at, looks
from zoo.attention_maps.maps import LayerMap
from zoo.attention_maps.patches import PatchImage, patch_maps
from zoo.pictures.heat_map import HeatMap, HeatMapGrid

ACROSS = 4
"""Maps per row, if rows are not layers."""

ACROSS_QUERIES = 12
"""Maximum number of maps per row, if rows are queries."""

MOST = 256
"""Above this number of maps, the mean over the heads of each layer is drawn."""

SINK = "sink"
"""The label of the attention sink."""

TITLES: dict[StackName, str] = {
    "encoder": "encoder",
    "decoder": "decoder",
    "cross": "decoder to encoder",
    "text": "text",
    "image": "image",
}

Labels = Mapping[Reader, Sequence[str]]
"""The labels of what each stack read."""


def grids(
    attended: Attended, name: str, labels: Labels, images: Mapping[Reader, PatchImage], *, mean: bool
) -> list[HeatMapGrid]:
    """One grid per stack of the model called ``name``: one row per layer with a map per head, or the means of layers.

    Attention to the patches of ``images`` is drawn over them, one map per query. Above :data:`MOST` maps, means are drawn in
    any case.
    """
    mean = mean or sum(len(layer.heads) for maps in attended.maps.values() for layer in maps) > MOST
    heat_maps = []
    for stack, maps in attended.maps.items():
        title, image = f"{name}: {TITLES[stack]}", images.get(looked_at(stack))
        if image is not None:
            heat_maps.append(_over_image(title, maps, image, labels[looks(stack)], mean=mean))
            continue
        views = [view for layer in maps for view in layer.views(mean=mean)]
        columns = [*labels[looked_at(stack)], *([SINK] * maps[0].sink)]
        shown = [HeatMap(view.title, view.shares.numpy().astype(np.float32), view.spread) for view in views]
        heat_maps.append(HeatMapGrid(title, labels[looks(stack)], columns, shown, _across(maps, mean=mean)))
    return heat_maps


def _over_image(
    title: str, maps: Sequence[LayerMap], image: PatchImage, labels: Sequence[str], *, mean: bool
) -> HeatMapGrid:
    """The maps of a stack whose keys are patches, over their image."""
    own = looks(maps[0].stack) == looked_at(maps[0].stack)
    mean = mean or (not own and len(labels) * sum(len(layer.heads) for layer in maps) > MOST)
    shown = [
        HeatMap(patch_map.view.title, patch_map.shares, patch_map.note)
        for layer in maps
        for patch_map in patch_maps(layer, image, labels, mean=mean)
    ]
    across = _across(maps, mean=mean) if own else min(len(labels), ACROSS_QUERIES)
    rows, columns = (
        [f"{letter}{number}" for number in range(count)]
        for letter, count in (("r", image.rows), ("c", image.columns))
    )
    return HeatMapGrid(title, rows, columns, shown, across, image.pixels)


def _across(maps: Sequence[LayerMap], *, mean: bool) -> int:
    return max(len(layer.heads) for layer in maps) if len(maps) > 1 and not mean else ACROSS
