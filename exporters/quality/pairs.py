"""Images with their texts: the inputs of dual encoders and of vision-language models.

They come from a directory of images, each with a text file of the same name, or from named arrays.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from exporters.preprocessing import Preprocessing
from exporters.preprocessing.fitting import media_bytes
from exporters.preprocessing.images import image_files, is_image, read_images, read_tiles
from exporters.preprocessing.packed import read_packed
from exporters.quality.arrays import read_named
from exporters.quality.examples import MASK, Example, of_tokens
from exporters.quality.input_checks import check_length, check_vocabulary
from exporters.quality.texts import read_text
from exporters.runtime.embedding import with_placeholders
from exporters.runtime.marked_prompts import image_ids, marked_ids
from exporters.runtime.text import TextTokenizer, filled_text
from exporters.verification.cases import random_images, vectors_per_image, without
from specs.base.errors import UserError
from specs.model.model import Model
from zoo.core.graph_names import GRID

PIXELS = "pixel_values"
"""The input name of images."""

TEXT = ".txt"
"""The suffix of an image's text file."""

RANDOM_TOKENS = 32
"""The number of random tokens in a text."""

HOW = (
    f"Give a directory of images, each with its text in a {TEXT} file of the same name, or a .npz file with arrays "
    "input_ids and pixel_values."
)


def placeholder_of(spec: Model) -> int | None:
    """The placeholder token of image vectors; None for a model without one."""
    return spec.connector.token if spec.connector is not None else None


def read_pairs(
    spec: Model, source: Path, tokenizer: TextTokenizer | None, preprocessing: Preprocessing
) -> tuple[list[Example], str]:
    """Read each image with its text; return them and the SHA-256 of all files.

    Raises :class:`specs.base.errors.UserError` for other files, and for files that do not fit the model: arrays hold images of
    one size.
    """
    if source.suffix == ".npz" and not spec.packs_images:
        return _of_arrays(spec, source)
    if not is_image(source):
        raise UserError(
            f"{source}: {spec.name} reads images with their texts\n  value: {source.name}\n  {HOW}"
        )
    if tokenizer is None:
        raise UserError(
            f"{source}: text needs a tokenizer, and there is no tokenizer.json next to the weights\n"
            "  Put its tokenizer.json there, or give a .npz file with arrays input_ids and pixel_values."
        )
    digest, pairs = hashlib.sha256(), []
    for path in image_files(source):
        text = path.with_suffix(TEXT)
        if not os.path.lexists(text):
            raise UserError(f"{path}: must have its text beside it\n  value: none\n  Write it to {text}.")
        written, sha256 = read_text(text)
        digest.update(media_bytes(path) + sha256.encode())
        pairs.append(_pair(spec, path, written.rstrip("\n"), tokenizer, preprocessing))
    return pairs, digest.hexdigest()


def _pair(
    spec: Model, path: Path, text: str, tokenizer: TextTokenizer, preprocessing: Preprocessing
) -> Example:
    """Read an image and its text as token ids."""
    seen, marks = _seen(spec, path, tokenizer, preprocessing)
    if spec.connector is None:
        ids = filled_text(_cut(tokenizer.ids([text])[0], spec), spec, tokenizer)
    else:
        (read,) = marked_ids([text], 1, spec, tokenizer)
        (ids,) = with_placeholders(spec, [read], 1, tokenizer.prefix, marks)
    tokens = torch.tensor([ids], dtype=torch.int64)
    _check(spec, f"{tokenizer.path} on {path.with_suffix(TEXT)}", tokens)
    return {**of_tokens(tokens), **seen}


def _seen(
    spec: Model, path: Path, tokenizer: TextTokenizer, preprocessing: Preprocessing
) -> tuple[Example, list[list[int]] | None]:
    """Read an image, and the tokens of its prompt if they are not the usual number of placeholders."""
    form, token = preprocessing.pixels, placeholder_of(spec)
    if spec.packs_images:
        packed = read_packed([path], form, preprocessing.packing, spec)
        seen = {PIXELS: torch.from_numpy(packed.pixels), GRID: torch.from_numpy(packed.grids)}
        return seen, [[token] * count for count in packed.vectors(spec) if token is not None]
    if form is not None and form.tiles is not None and token is not None:
        tiles, grids = read_tiles([path], form, spec)
        return {PIXELS: torch.from_numpy(tiles)}, image_ids(grids, spec, tokenizer)
    return {PIXELS: torch.from_numpy(read_images([path], form, spec)[0])}, None


def _cut(ids: list[int], spec: Model) -> list[int]:
    """Cut the ids of a text to a dual encoder's context: the beginning and the last token."""
    limit = spec.context_length_of(spec.first_stack)
    return ids if limit is None or len(ids) <= limit else [*ids[: limit - 1], ids[-1]]


def _check(spec: Model, where: str, ids: Tensor) -> None:
    """Raise :class:`specs.base.errors.UserError` for tokens that do not fit a model, or without text after the images."""
    check_vocabulary(spec, where, ids, "Give the tokenizer that came with the model.")
    check_length(spec, where, ids)
    if not ids.numel() or int(ids[0, -1]) == placeholder_of(spec):
        raise UserError(
            f"{where}: must have text after the image\n  value: none\n  Write what the image shows."
        )


def _of_arrays(spec: Model, path: Path) -> tuple[list[Example], str]:
    """Pair the rows of ``input_ids`` with the images of ``pixel_values``, in order."""
    source, arrays = read_named(path, "input_ids", (None,))
    _, images = read_named(path, PIXELS, spec.embedding_of(spec.stack("image")).input_shape(None))
    rows = [ids[mask == 1][None] for ids, mask in zip(arrays["input_ids"], arrays[MASK], strict=True)]
    counts, pixels = [_images_in(spec, row) for row in rows], images[PIXELS]
    if sum(counts) != len(pixels):
        rule = (
            "text has an image" if spec.connector is None else "image has its placeholders among the tokens"
        )
        raise UserError(
            f"{path}: every {rule}\n  value: {len(pixels)} images, and {sum(counts)} in input_ids\n"
            "  Save as many rows of pixel_values."
        )
    for index, row in enumerate(rows):
        _check(spec, f"{path}, row {index}", row)
    parts = pixels.split(counts)
    pairs = [{**of_tokens(row), PIXELS: part} for row, part in zip(rows, parts, strict=True)]
    return pairs, source.sha256


def _images_in(spec: Model, row: Tensor) -> int:
    """The number of images in a row of tokens."""
    token = placeholder_of(spec)
    return 1 if token is None else int((row == token).sum()) // spec.vectors_per_image


def random_pairs(spec: Model, count: int, generator: Any) -> list[Example]:
    """Random tokens after random images, used when weights are random."""
    assert spec.image is not None
    assert spec.vocab_size is not None
    token = placeholder_of(spec)
    images = [random_images(spec, 1, generator) for _ in range(count)]
    vectors = 0 if token is None else vectors_per_image(spec)
    marks: Sequence[int] = [] if token is None else [token] * vectors
    room = (spec.context_length_of(spec.first_stack) or RANDOM_TOKENS + len(marks)) - len(marks)
    sizes = (count, min(RANDOM_TOKENS, room))
    ids = torch.randint(spec.vocab_size, sizes, generator=generator)
    ids = ids if token is None else without(ids, token, spec.vocab_size)
    front = torch.tensor(marks, dtype=torch.int64)
    return [
        {
            **of_tokens(torch.cat([front, row])[None]),
            PIXELS: batch.inputs,
            **({} if batch.grids is None else {GRID: batch.grids}),
        }
        for row, batch in zip(ids, images, strict=True)
    ]
