"""Representative inputs, split into a calibration part and a judged part.

They come from a file (text through the checkpoint's tokenizer, token ids in .npy, the model's inputs by name in .npz, audio in
.wav, images with texts), from the corpus in this package, or from a decoder's own output.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from exporters.preprocessing import UNSTATED, Preprocessing
from exporters.quality.arrays import read_ids, read_named
from exporters.quality.examples import of_tokens
from exporters.quality.input_checks import check_length, check_vocabulary, input_sizes
from exporters.quality.media_inputs import of_pairs, without_tokens
from exporters.quality.pairs import random_pairs
from exporters.quality.parts import (
    CALIBRATING,
    WINDOWS,
    NoInputsError,
    Representative,
    batched,
    described,
    most_of,
    parted,
    size_of,
)
from exporters.quality.texts import read_text
from exporters.runtime.text import TextTokenizer
from specs.base.errors import UserError, option_name
from specs.model.model import Model

WINDOW = 256
"""The length of a decoder's window in tokens, unless its context is shorter."""

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
        return _windows(spec, str(path), sha256, ids, [], share)
    if tokenizer is None:
        raise (NoInputsError if path is None else UserError)(
            f"{path or 'the corpus of zoo'}: text needs a tokenizer, and there is no tokenizer.json next to the weights of {spec.name}\n"
            f"  {_without_tokenizer(spec, path, option)}"
        )
    text, name, sha256 = read_text(path)
    if spec.architecture == "decoder":
        ids = torch.tensor(tokenizer.plain(text), dtype=torch.int64)
        check_vocabulary(
            spec, f"{tokenizer.path} on {name}", ids, "Give the tokenizer that came with the model."
        )
        return _windows(spec, name, sha256, ids, tokenizer.prefix, share)
    return _of_sentences(spec, name, sha256, text, tokenizer, share)


def _without_tokenizer(spec: Model, path: Path | None, option: str) -> str:
    """Return the remedies for text without a tokenizer."""
    remedy = "Put its tokenizer.json there, or give token ids as whole numbers in a .npy file"
    if path is not None:
        return f"{remedy}."
    largest = f" from 0 to {spec.vocab_size - 1}" if spec.vocab_size else ""
    return f"{remedy}: {option_name(option)} FILE.npy, with ids{largest}."


def random_inputs(spec: Model, seed: int = 0) -> Representative:
    """Random tokens, preceded by random images if a model reads both; used when weights are random."""
    generator = torch.Generator().manual_seed(seed)
    if spec.image is not None:
        pairs = random_pairs(spec, WINDOWS, generator)
        return Representative(f"random images and token ids, seed {seed}", [], batched(spec, pairs))
    assert spec.vocab_size is not None
    stack = spec.first_stack
    length = min(WINDOW, spec.context_length_of(stack) or WINDOW)
    rows = torch.randint(spec.vocab_size, (WINDOWS, length), generator=generator)
    return Representative(f"random token ids, seed {seed}", [], [of_tokens(row[None]) for row in rows])


def _windows(
    spec: Model, name: str, sha256: str, ids: Tensor, prefix: Sequence[int], share: int
) -> Representative:
    """Cut a token stream into windows, evenly spaced over the calibration part and over the judged part."""
    length = min(WINDOW, spec.context_length_of(spec.last_stack) or WINDOW)
    own = length - len(prefix)
    needed = own * (2 if share else 1)
    if len(ids) < needed:
        raise UserError(
            f"{name}: must have at least {needed} tokens for {spec.name}: "
            + (f"one window of {own} calibrates, and another is judged" if share else f"a window has {own}")
            + f"\n  value: {len(ids)} tokens\n  Give a longer text."
        )
    border = max(own, len(ids) // share) if share else 0
    front = torch.tensor(prefix, dtype=torch.int64)
    first, rest = (
        [of_tokens(torch.cat([front, window])[None]) for window in _spread(part, own, most)]
        for part, most in ((ids[:border], CALIBRATING), (ids[border:], WINDOWS))
    )
    return Representative(described(name, size_of(rest)), first, rest, sha256)


def _spread(part: Tensor, length: int, most: int) -> list[Tensor]:
    """Cut at most ``most`` windows without overlap, from the first token to the last."""
    count = min(most, len(part) // length)
    if not count:
        return []
    step = (len(part) - length) / max(1, count - 1)
    starts = [round(index * step) for index in range(count)] if count > 1 else [0]
    return [part[start : start + length] for start in starts]


_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+")


def _of_sentences(
    spec: Model, name: str, sha256: str, text: str, tokenizer: TextTokenizer, share: int
) -> Representative:
    """Sentences with the special tokens that the tokenizer adds."""
    sentences = [" ".join(piece.split()) for piece in _SENTENCE.split(text)]
    sentences = [sentence for sentence in sentences if len(sentence) > 1]
    most = max(most_of(spec).judged * 2, most_of(spec).calibrating * share)
    sentences = (
        [sentences[index * len(sentences) // most] for index in range(most)]
        if len(sentences) > most
        else sentences
    )
    limit = spec.context_length_of(spec.first_stack)
    rows = [ids if limit is None or len(ids) <= limit else [*ids[: limit - 1], ids[-1]]
            for ids in tokenizer.ids(sentences) if ids]  # fmt: skip
    if rows:
        every = torch.tensor([token for row in rows for token in row])
        check_vocabulary(
            spec, f"{tokenizer.path} on {name}", every, "Give the tokenizer that came with the model."
        )
    examples = [of_tokens(torch.tensor([row])) for row in rows]
    parts = parted(name, sha256, examples, share, most_of(spec), "sentences")
    calibration, judged = (batched(spec, part) for part in (parts.calibration, parts.judged))
    return replace(parts, calibration=calibration, judged=judged)
