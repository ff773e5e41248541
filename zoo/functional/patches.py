"""Places of the patches of images of any size, and of their vectors among tokens.

Shapes: images M, patches of all images N, batch B, tokens T.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo.functional.tensors import positions_from


@dataclass(frozen=True)
class GridPlaces:
    """The place of each patch, or of each joined square of patches, in its image.

    frame, row, column: its own; rows, columns: those of its image; first: the number of its frame's first patch, counted
    over all images; last: 1 for the last patch of an image, else 0. All have the shape of the numbers that they are for.
    """

    frame: Tensor
    row: Tensor
    column: Tensor
    rows: Tensor
    columns: Tensor
    first: Tensor
    last: Tensor

    @property
    def coordinates(self) -> Tensor:
        """Row and column, and the rows and columns of the image: 4 ..."""
        return torch.stack((self.row, self.column, self.rows, self.columns))

    def groups(self, window: int | None) -> Tensor:
        """A number for each frame, or for each of its square windows of this side, that no other has."""
        if window is None:
            return self.first
        across = (self.columns + (window - 1)) // window
        return self.first + self.row // window * across + self.column // window


def grid_places(number: Tensor, grids: Tensor, square: int = 1) -> GridPlaces:
    """The places of patches by their ``number`` over all images, of any shape, int64.

    grids: M 3, the frames, rows and columns of each image. Patches come frame by frame and by squares of the side ``square``,
    row after row in both.
    """
    counts = grids[:, 0] * grids[:, 1] * grids[:, 2]  # M
    ends = counts.cumsum(0)  # M
    image = (number[..., None] >= ends).to(torch.int64).sum(-1)  # ...: M beyond the last image
    table = torch.cat((grids, (ends - counts)[:, None], counts[:, None]), 1)  # M 5
    table = torch.cat((table, table.sum(0, keepdim=True) * 0), 0)  # M + 1, 5
    facts = F.embedding(image, table)  # ... 5
    rows, columns, start, count = (facts[..., axis] for axis in range(1, 5))
    inside = number - start
    area, across = (rows * columns).clamp(min=1), (columns // square).clamp(min=1)
    frame = inside // area
    within = inside - frame * area
    block = within // square**2
    rest = within - block * square**2
    block_row, rest_row = block // across, rest // square
    return GridPlaces(
        frame,
        block_row * square + rest_row,
        (block - block_row * across) * square + rest - rest_row * square,
        rows,
        columns,
        number - within,
        (inside == count - 1).to(torch.int64),
    )


def packed_places(grids: Tensor, pixels: Tensor, square: int) -> GridPlaces:
    """The places of all patches, 1 N each.  grids: M 3, pixels: N values."""
    return grid_places(positions_from(0, pixels.shape[0], pixels)[None], grids, square)


def image_coordinates(token: int, ids: Tensor, mask: Tensor, grids: Tensor, square: int) -> Tensor:
    """Frame, row and column of each token, which text has alike: 3 B T, int64 (M-RoPE: Wang et al., 2024).

    ids: B T, mask: B T with 1 for real tokens, grids: M 3, the frames, rows and columns of patches of the images whose vectors
    are at the placeholders ``token``, one for each ``square``. Text after an image goes on after its last row or column,
    whichever is further.
    """
    matches = (ids == token).to(torch.int64) * mask  # B T
    number = (matches.reshape(-1).cumsum(0) - 1).clamp(min=0).reshape(ids.shape)  # B T: of each vector
    joined = torch.cat((grids[:, :1], grids[:, 1:] // square), 1)  # M 3
    places = grid_places(number, joined)
    steps = mask - matches + matches * places.last * torch.maximum(places.rows, places.columns)  # B T
    start = steps.cumsum(1) - steps  # B T
    return torch.stack([start + matches * axis for axis in (places.frame, places.row, places.column)])
