"""Representative inputs, split into a calibration part and a judged part.

They come from a file (text through the checkpoint's tokenizer, token ids in .npy, the model's inputs by name in .npz, audio in
.wav, images with texts), from the corpus in this package, or from a decoder's own output.
"""

from __future__ import annotations

from pathlib import Path

import torch

from exporters.preprocessing import UNSTATED, Preprocessing
from exporters.quality.arrays import read_ids, read_named
from exporters.quality.examples import of_tokens
from exporters.quality.input_checks import check_length, check_vocabulary, input_sizes
from exporters.quality.media_inputs import of_pairs, without_tokens
from exporters.quality.pairs import random_pairs
from exporters.quality.parts import (
    WINDOWS,
    NoInputsError,
    Representative,
    batched,
    described,
    most_of,
    parted,
    size_of,
)
from exporters.quality.text_inputs import WINDOW, of_texts, windows_of
from exporters.quality.texts import texts_of
from exporters.runtime.text import TextTokenizer
from specs.base.errors import UserError, option_name
from specs.model.model import Model

CALIBRATES = 3
"""The calibration part is the first of this many equal parts; the rest is judged."""


def representative(
    spec: Model,
    path: Path | None,
    tokenizer: TextTokenizer | None,
    preprocessing: Preprocessing = UNSTATED,
    *,
    calibrates: bool = True,
    option: str = "calibrate",
) -> Representative:
    """Read the inputs in a file, by default in the corpus. Unless ``calibrates``, all of them are judged.

    ``option`` names the file in messages.
    ``tokenizer`` and ``preprocessing`` are the checkpoint's, for text, and for audio and images. Raises :class:`NoInputsError`
    if there is no file and the corpus cannot be tokenized, and :class:`specs.base.errors.UserError` for a file that does not
    fit the model.
    """
    embedding = spec.embedding_of(spec.first_stack)
    share = CALIBRATES if calibrates else 0
    if spec.image is not None:
        return of_pairs(spec, path, tokenizer, preprocessing, share)
    if path is not None and path.suffix == ".npz":
        source, arrays = read_named(path, embedding.input_name, input_sizes(spec))
        check_vocabulary(spec, source.name, arrays.get("input_ids"), "Give ids of the model's own tokenizer.")
        rows = [
            {name: values[row : row + 1] for name, values in arrays.items()} for row in range(source.rows)
        ]
        check_length(spec, source.name, arrays.get("input_ids"))
        return parted(source.name, source.sha256, rows, share, most_of(spec), "examples")
    if not embedding.takes_tokens:
        return without_tokens(spec, path, preprocessing, share)
    if path is not None and path.suffix == ".npy":
        ids, sha256 = read_ids(path)
        check_vocabulary(spec, str(path), ids, "Give ids of the model's own tokenizer.")
        if ids.dim() == 2:
            check_length(spec, str(path), ids)
            rows = [of_tokens(row[None]) for row in ids]
            return parted(str(path), sha256, rows, share, most_of(spec), "rows")
        parts = windows_of(spec, str(path), ids, [], share)
        return Representative(described(str(path), size_of(parts[1])), *parts, sha256)
    if tokenizer is None:
        raise (NoInputsError if path is None else UserError)(
            f"{path or 'the corpus of zoo'}: text needs a tokenizer, and there is no tokenizer.json next to the weights of {spec.name}\n"
            f"  {_without_tokenizer(spec, path, option)}"
        )
    return of_texts(spec, texts_of(path), tokenizer, share)


def _without_tokenizer(spec: Model, path: Path | None, option: str) -> str:
    """Return the remedies for text without a tokenizer."""
    remedy = "Put its tokenizer.json there, or give token ids as whole numbers in a .npy file"
    if path is not None:
        return f"{remedy}."
    largest = f" from 0 to {spec.vocab_size - 1}" if spec.vocab_size else ""
    return f"{remedy}: {option_name(option)} FILE.npy, with ids{largest}."


def random_inputs(spec: Model) -> Representative:
    """Random tokens, preceded by random images if a model reads both; used when weights are random."""
    generator = torch.Generator().manual_seed(0)
    if spec.image is not None:
        pairs = random_pairs(spec, WINDOWS, generator)
        return Representative("random images and token ids, seed 0", [], batched(spec, pairs))
    assert spec.vocab_size is not None
    stack = spec.first_stack
    length = min(WINDOW, spec.context_length_of(stack) or WINDOW)
    rows = torch.randint(spec.vocab_size, (WINDOWS, length), generator=generator)
    return Representative("random token ids, seed 0", [], [of_tokens(row[None]) for row in rows])
