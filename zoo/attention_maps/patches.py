"""Attention to the patches of an image, as grids over it.

Shapes: rows of patches R, columns of patches C, queries T, keys S.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specs.model.model import Model
from zoo.attention_maps.choice import Reader, looked_at, looks
from zoo.attention_maps.maps import HeadMap, LayerMap
from zoo.attention_maps.reading import AttentionInput

CLASS = "[CLS]"


@dataclass(frozen=True)
class PatchImage:
    """The patches that a stack reads, and the pixels that they cover: grey values from 0 to 1."""

    rows: int
    columns: int
    pixels: NDArray[np.float32]


@dataclass(frozen=True)
class PatchMap:
    """The attention weights of one query over patches: R C, as shares of the ``largest``.

    ``query``: the label of the query; ``view``: the attention that it belongs to.
    """

    view: HeadMap
    query: str
    shares: NDArray[np.float32]
    largest: float

    @property
    def note(self) -> str:
        """The query and its largest weight, as text."""
        return f"{self.query}: up to {self.largest:.1%}"


def patch_images(spec: Model, reading: AttentionInput) -> dict[Reader, PatchImage]:
    """The images that stacks read as patches."""
    images = {}
    for name, stack in spec.stacks():
        grid = spec.embedding_of(stack).patch_grid
        if grid is not None and reading.values is not None:
            height, width = grid.rows * grid.size, grid.columns * grid.size
            grey = reading.values[0, :, :height, :width].mean(0)
            span = float(np.ptp(grey)) or 1.0
            images[name] = PatchImage(grid.rows, grid.columns, (grey - grey.min()) / span)
    return images


def patch_maps(layer: LayerMap, image: PatchImage, labels: Sequence[str], *, mean: bool) -> list[PatchMap]:
    """The maps of a layer whose keys are patches, for each head or for their mean.

    Queries are the tokens of a decoder; in an encoder the class token, or the mean of the patches where it has none.
    """
    count = image.rows * image.columns
    own = looks(layer.stack) == looked_at(layer.stack)
    maps = []
    for view in layer.views(mean=mean):
        weights = view.weights.numpy().astype(np.float32)  # T S
        end = (
            len(labels) if own else weights.shape[1] - int(layer.sink)
        )  # of patches, before queries that join them
        queries = list(zip(labels, weights, strict=not own))
        if own:
            classes = [(label, row) for label, row in queries if label == CLASS]
            queries = classes[:1] or [("mean", weights[end - count : end].mean(0))]
        for label, row in queries:
            shares = row[end - count : end].reshape(image.rows, image.columns)
            largest = float(shares.max())
            maps.append(PatchMap(view, label, shares / (largest or 1.0), largest))
    return maps
