"""Inputs of the example programs that run an export."""

from __future__ import annotations

from collections.abc import Sequence

from specs.model.model import Model
from zoo.generation.settings import GENERATION
from zoo.record.manifest import Manifest
from zoo.record.records import GraphRecord

TOKENIZER = "tokenizer.json"
"""The tokenizer file that all clients read."""


SAMPLES = 16000
"""The length of a recording of one second."""


def example_ids(spec: Model, graph: GraphRecord) -> str:
    """Return a few valid token ids as the items of a list."""
    longest = min(4, graph.context_length or 4)
    return ", ".join(str(1 + index % max(1, (spec.vocab_size or 2) - 1)) for index in range(longest))


def example_sizes(dims: Sequence[int | str | None]) -> list[int]:
    """Return the sizes of one image or recording from the dims of a graph's input; a length becomes :data:`SAMPLES`."""
    return [size if isinstance(size, int) else SAMPLES for size in dims[1:]]


def example_grid(spec: Model) -> tuple[list[int], int]:
    """Return the patch grid of a small image for models that take any size (frames, rows, columns), and its patches."""
    side = 2 * spec.image_connector.square
    return [1, side, side], side**2


def lacks_start_token(spec: Model, manifest: Manifest) -> bool:
    """Return whether a client needs the start token of an encoder-decoder as an argument."""
    return spec.architecture == "encoder-decoder" and GENERATION not in manifest.files
