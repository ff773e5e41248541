"""The tokens of a tiled image in a prompt of Idefics 3, SmolVLM or InternVL."""

from __future__ import annotations

from collections.abc import Sequence

from exporters.preprocessing.tiles import Grid
from exporters.runtime.text import TextTokenizer
from specs.model.model import Model
from zoo.checkpoints.carried import stated_in

_MARKS = {"fake_image_token": "<fake_token_around_image>", "global_image_token": "<global-img>"}
"""The settings and usual names of two tokens: around each tile and the image, and before the whole image."""


def image_ids(grids: Sequence[Grid], spec: Model, tokenizer: TextTokenizer) -> list[list[int]]:
    """The token ids of each image: a placeholder for every vector, between marks of rows and columns (InternVL has no marks
    between tiles)."""
    connector = spec.image_connector
    if tokenizer.stated("start_image_token"):
        return [[connector.token] * spec.vectors_per_image * grid.images for grid in grids]
    settings = stated_in(tokenizer.path.parent / "tokenizer_config.json")
    mark, whole = (
        settings[name] if isinstance(settings.get(name), str) else default for name, default in _MARKS.items()
    )
    vectors = tokenizer.token(connector.token) * spec.vectors_per_image

    def text(grid: Grid) -> str:
        rows = [
            "".join(f"{mark}<row_{row}_col_{column}>{vectors}" for column in range(1, grid.columns + 1))
            for row in range(1, grid.rows + 1)
        ]
        end = f"{mark}{whole}{vectors}{mark}"
        return "\n".join([*rows, "", end]) if rows else end

    return [tokenizer.plain(text(grid)) for grid in grids]
