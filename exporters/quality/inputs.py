"""Representative inputs: what a model is made for, in one part for calibrating and another for judging.

A file gives them (text through the checkpoint's tokenizer, token ids in .npy, the model's inputs by name in .npz, audio in .wav), or
else the corpus that ships with the project, or else a decoder's own output.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from exporters.quality.arrays import read_ids, read_named
from exporters.quality.audio import PREPROCESSOR, LogMel, is_audio, read_audio
from exporters.quality.examples import Example, joined, of_tokens
from exporters.quality.texts import read_text
from exporters.runtime.text import Text
from specs.errors import UserError
from specs.model import Model

WINDOW = 256
"""Tokens of a decoder's window, where its context is not shorter."""

WINDOWS = 12
"""Windows that are judged at most."""

CALIBRATING = 32
"""Windows that calibrate at most: what is known of the inputs of a layer grows with them."""

SENTENCES = 200
"""The same for an encoder's sentences."""

SOURCES = 12
"""The same for what an encoder-decoder reads, which is the start of long work."""

BATCH = 8
"""Sentences that an encoder reads at once."""

SOURCES_CALIBRATING = 64
"""Texts that an encoder-decoder reads to calibrate, at most."""

CALIBRATES = 3
"""One part in so many calibrates, the first; the others are judged."""


class NoInputsError(UserError):
    """There is nothing representative to judge a model on."""


@dataclass(frozen=True, eq=False)
class Representative:
    """Inputs that a model is made for.  ``calibration`` and ``judged`` share no token; ``sha256`` is that of the source."""

    description: str
    calibration: list[Example]
    judged: list[Example]
    sha256: str | None = None

    @property
    def size(self) -> str:
        """What is judged, such as ``12 x 256 tokens``."""
        return _size_of(self.judged)


@dataclass(frozen=True)
class _Source:
    """A text or an array: its name in messages, and its digest."""

    name: str
    sha256: str


class _Most(NamedTuple):
    """How many examples calibrate at most, and how many are judged."""

    calibrating: int
    judged: int


def representative(
    spec: Model,
    given: Path | None,
    tokenizer: Text | None,
    log_mel: LogMel | None = None,
    *,
    calibrates: bool = True,
) -> Representative:
    """The inputs in a file, or of the corpus where none is given.  Without ``calibrates``, all are judged.

    ``tokenizer`` and ``log_mel`` are those of the checkpoint, for text and for audio.  Raises :class:`NoInputsError` where nothing is given and the corpus cannot be tokenized, and
    :class:`specs.errors.UserError` for a file that does not fit the model.
    """
    embedding = spec.embedding_of(spec.encoder or spec.last_stack)
    share = CALIBRATES if calibrates else 0
    if given is not None and given.suffix == ".npz":
        source, arrays = read_named(given, embedding.input_name, _sizes(spec))
        _check_vocabulary(
            spec, source.name, arrays.get("input_ids"), "Give ids of the model's own tokenizer."
        )
        rows = [
            {name: values[row : row + 1] for name, values in arrays.items()} for row in range(source.rows)
        ]
        _check_length(spec, source.name, arrays.get("input_ids"))
        return _parted(source.name, source.sha256, rows, share, _most(spec), "examples")
    if not embedding.takes_tokens:
        hears = embedding.input_name == "input_features"
        if hears and given is not None and is_audio(given):
            return _of_audio(spec, given, log_mel, share)
        remedy = f"Give {'audio as .wav files, or ' if hears else ''}a .npz file with an array {embedding.input_name}."
        if given is None:
            raise NoInputsError(f"{spec.name} takes {embedding.input_name}, which no text gives\n  {remedy}")
        raise UserError(
            f"{given}: {spec.name} takes {embedding.input_name}, which no text gives\n"
            f"  value: {given.suffix or given.name}\n  {remedy}"
        )
    if given is not None and given.suffix == ".npy":
        ids, sha256 = read_ids(given)
        _check_vocabulary(spec, str(given), ids, "Give ids of the model's own tokenizer.")
        if ids.dim() == 2:
            _check_length(spec, str(given), ids)
            rows = [of_tokens(row[None]) for row in ids]
            return _parted(str(given), sha256, rows, share, _most(spec), "rows")
        return _windows(spec, str(given), sha256, ids, [], share)
    if tokenizer is None:
        remedy = (
            "Put its tokenizer.json there, or give token ids as whole numbers in a .npy file."
            if given is not None or spec.architecture != "decoder"
            else "Put its tokenizer.json there."
        )
        raise (NoInputsError if given is None else UserError)(
            f"{given or 'the corpus'}: text needs a tokenizer, and there is no tokenizer.json beside the weights\n  {remedy}"
        )
    text, name, sha256 = read_text(given)
    if spec.architecture == "decoder":
        ids = torch.tensor(tokenizer.plain(text), dtype=torch.int64)
        _check_vocabulary(
            spec, f"{tokenizer.path} on {name}", ids, "Give the tokenizer that came with the model."
        )
        return _windows(spec, name, sha256, ids, tokenizer.prefix, share)
    return _of_sentences(spec, name, sha256, text, tokenizer, share)


def random_ids(spec: Model, seed: int = 0) -> Representative:
    """Random tokens, for random weights alone: to these no text means more than any other."""
    generator = torch.Generator().manual_seed(seed)
    assert spec.vocab_size is not None
    stack = spec.encoder or spec.last_stack
    length = min(WINDOW, spec.context_length_of(stack) or WINDOW)
    rows = torch.randint(spec.vocab_size, (WINDOWS, length), generator=generator)
    return Representative(f"random token ids, seed {seed}", [], [of_tokens(row[None]) for row in rows])


def _windows(
    spec: Model, name: str, sha256: str, ids: Tensor, prefix: Sequence[int], share: int
) -> Representative:
    """Windows of a stream of tokens, spread evenly over the part for calibrating and over the part that is judged."""
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
    return Representative(_described(name, _size_of(rest)), first, rest, sha256)


def _spread(part: Tensor, length: int, most: int) -> list[Tensor]:
    """At most so many windows that do not overlap, from the first token to the last."""
    count = min(most, len(part) // length)
    if not count:
        return []
    step = (len(part) - length) / max(1, count - 1)
    starts = [round(at * step) for at in range(count)] if count > 1 else [0]
    return [part[start : start + length] for start in starts]


def _of_audio(spec: Model, given: Path, log_mel: LogMel | None, share: int) -> Representative:
    """Spectrograms of audio files."""
    source, features = read_audio(given, log_mel)
    if features.shape[1:] != _sizes(spec):
        wanted, got = (" x ".join(map(str, shape)) for shape in (_sizes(spec), features.shape[1:]))
        raise UserError(
            f"{given}: spectrograms must be {wanted} for {spec.name}\n"
            f"  value: {got}, by the {PREPROCESSOR} beside the weights\n  Put that of the model there."
        )
    rows = [{"input_features": torch.from_numpy(each)[None]} for each in features]
    return _parted(source.name, source.sha256, rows, share, _most(spec), "recordings")


_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+")


def _of_sentences(
    spec: Model, name: str, sha256: str, text: str, tokenizer: Text, share: int
) -> Representative:
    """Sentences with the special tokens that the tokenizer adds."""
    sentences = [" ".join(found.split()) for found in _SENTENCE.split(text)]
    sentences = [sentence for sentence in sentences if len(sentence) > 1]
    most = max(_most(spec).judged * 2, _most(spec).calibrating * share)
    sentences = (
        [sentences[at * len(sentences) // most] for at in range(most)] if len(sentences) > most else sentences
    )
    limit = spec.context_length_of(spec.encoder or spec.last_stack)
    rows = [ids if limit is None or len(ids) <= limit else [*ids[: limit - 1], ids[-1]]
            for ids in tokenizer.ids(sentences) if ids]  # fmt: skip
    if rows:
        every = torch.tensor([token for row in rows for token in row])
        _check_vocabulary(
            spec, f"{tokenizer.path} on {name}", every, "Give the tokenizer that came with the model."
        )
    examples = [of_tokens(torch.tensor([row])) for row in rows]
    found = _parted(name, sha256, examples, share, _most(spec), "sentences")
    if spec.architecture == "encoder":
        calibration, judged = (
            [joined(part[at : at + BATCH]) for at in range(0, len(part), BATCH)]
            for part in (found.calibration, found.judged)
        )
        return Representative(found.description, calibration, judged, sha256)
    return found


def _parted(
    name: str, sha256: str, rows: list[Example], share: int, most: _Most, what: str
) -> Representative:
    """The first part of some examples, for calibrating, and some of the rest, to judge."""
    least = 2 + bool(share)
    if len(rows) < least:
        raise UserError(
            f"{name}: must have at least {least} {what}"
            + (": one calibrates, and two are judged" if share else " to compare")
            + f"\n  value: {len(rows)} {what}\n  Give more."
        )
    border = max(1, len(rows) // share) if share else 0
    judged = rows[border:][: most.judged]
    calibration = rows[:border][: most.calibrating]
    return Representative(_described(name, f"{len(judged)} {what}"), calibration, judged, sha256)


def _described(name: str, size: str) -> str:
    """What is judged, without the place of its file: records of an export name none of this machine's."""
    return f"{Path(name).name}, {size}"


def _most(spec: Model) -> _Most:
    """How many examples are taken at most."""
    if spec.architecture == "encoder-decoder":
        takes_tokens = spec.embedding_of(spec.encoder or spec.last_stack).takes_tokens
        return _Most(SOURCES_CALIBRATING if takes_tokens else SOURCES, SOURCES)
    return {"encoder": _Most(SENTENCES, SENTENCES), "decoder": _Most(CALIBRATING, WINDOWS)}[spec.architecture]


def _check_vocabulary(spec: Model, where: str, ids: Tensor | None, remedy: str) -> None:
    vocabulary = spec.vocab_size or 0
    if ids is None or not ids.numel():
        return
    worst = ids.max() if int(ids.max()) >= vocabulary else ids.min()
    if not 0 <= int(worst) < vocabulary:
        raise UserError(
            f"{where}: token ids must be below the vocab_size of {spec.name}, which is {vocabulary}\n"
            f"  value: {int(worst)}\n  {remedy}"
        )


def _check_length(spec: Model, where: str, ids: Tensor | None) -> None:
    limit = spec.context_length_of(spec.encoder or spec.last_stack)
    if ids is not None and limit is not None and ids.shape[1] > limit:
        raise UserError(
            f"{where}: rows must fit the context of {spec.name}, which is {limit} tokens\n"
            f"  value: {ids.shape[1]} tokens\n  Give shorter rows."
        )


def _sizes(spec: Model) -> tuple[int | None, ...]:
    """The sizes of one input after the batch; None where any length goes."""
    stack = spec.encoder or spec.last_stack
    embedding = spec.embedding_of(stack)
    return (None,) if embedding.takes_tokens else embedding.input_shape(spec.context_length_of(stack))


def _size_of(examples: Sequence[Example]) -> str:
    lengths = {example["input_ids"].shape[1] for example in examples}
    rows = sum(len(example["input_ids"]) for example in examples)
    return f"{rows} x {lengths.pop()} tokens" if len(lengths) == 1 else f"{rows} rows"
