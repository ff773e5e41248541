"""Representative inputs, split into a part for calibration and a part for judging.

They come from a file (text through the checkpoint's tokenizer, token ids in .npy, the model's inputs by name in .npz,
audio in .wav), or from the corpus that ships with the project, or from a decoder's own output.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from exporters.preprocessing import UNSTATED, Preprocessing
from exporters.preprocessing.audio import is_audio, read_audio
from exporters.preprocessing.images import image_files, is_image, read_images
from exporters.preprocessing.recordings import form_kind, read_whole
from exporters.quality.arrays import read_ids, read_named
from exporters.quality.examples import MASK, Example, joined, of_tokens
from exporters.quality.input_checks import check_length, check_vocabulary, input_sizes
from exporters.quality.texts import read_text
from exporters.runtime.text import TextTokenizer
from specs.errors import UserError
from specs.model import Model

SECONDS = 5
"""The length of a recording, unless one is shorter."""

WINDOW = 256
"""The length of a decoder's window in tokens, unless its context is shorter."""

WINDOWS = 12
"""The largest number of windows to judge."""

CALIBRATING = 32
"""The largest number of windows to calibrate on: the statistics of a layer's inputs improve with them."""

SENTENCES = 200
"""The same for an encoder's sentences."""

SOURCES = 12
"""The same for the inputs of an encoder-decoder, which are expensive."""

BATCH = 8
"""The number of sentences in a batch of an encoder."""

SOURCES_CALIBRATING = 64
"""The largest number of calibration texts of an encoder-decoder."""

CALIBRATES = 3
"""The first of this many parts is for calibration; the rest is judged."""


class NoInputsError(UserError):
    """There are no representative inputs to judge a model on."""


@dataclass(frozen=True, eq=False)
class Representative:
    """The representative inputs of a model.

    ``calibration`` and ``judged`` share no token; ``sha256`` is the digest of the source.
    """

    description: str
    calibration: list[Example]
    judged: list[Example]
    sha256: str | None = None

    @property
    def size(self) -> str:
        """The size of the judged part, such as ``12 x 256 tokens``."""
        return _size_of(self.judged)


@dataclass(frozen=True)
class _Source:
    """A text or an array: its name in messages, and its digest."""

    name: str
    sha256: str


class _Most(NamedTuple):
    """The largest numbers of examples to calibrate on and to judge."""

    calibrating: int
    judged: int


def representative(
    spec: Model,
    given: Path | None,
    tokenizer: TextTokenizer | None,
    preprocessing: Preprocessing = UNSTATED,
    *,
    calibrates: bool = True,
) -> Representative:
    """The inputs in a file, or of the corpus by default. Without ``calibrates``, all of them are judged.

    ``tokenizer`` and ``preprocessing`` are the checkpoint's, for text, and for audio and images. Raises :class:`NoInputsError` where no
    file is given and the corpus cannot be tokenized, and :class:`specs.errors.UserError` for a file that does not fit
    the model.
    """
    embedding = spec.embedding_of(spec.first_stack)
    share = CALIBRATES if calibrates else 0
    if given is not None and given.suffix == ".npz":
        source, arrays = read_named(given, embedding.input_name, input_sizes(spec))
        check_vocabulary(spec, source.name, arrays.get("input_ids"), "Give ids of the model's own tokenizer.")
        rows = [
            {name: values[row : row + 1] for name, values in arrays.items()} for row in range(source.rows)
        ]
        check_length(spec, source.name, arrays.get("input_ids"))
        return _parted(source.name, source.sha256, rows, share, _most(spec), "examples")
    if not embedding.takes_tokens:
        return _without_tokens(spec, given, preprocessing, share)
    if given is not None and given.suffix == ".npy":
        ids, sha256 = read_ids(given)
        check_vocabulary(spec, str(given), ids, "Give ids of the model's own tokenizer.")
        if ids.dim() == 2:
            check_length(spec, str(given), ids)
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
            f"{given or 'the corpus'}: text needs a tokenizer, and there is no tokenizer.json next to the weights\n  {remedy}"
        )
    text, name, sha256 = read_text(given)
    if spec.architecture == "decoder":
        ids = torch.tensor(tokenizer.plain(text), dtype=torch.int64)
        check_vocabulary(
            spec, f"{tokenizer.path} on {name}", ids, "Give the tokenizer that came with the model."
        )
        return _windows(spec, name, sha256, ids, tokenizer.prefix, share)
    return _of_sentences(spec, name, sha256, text, tokenizer, share)


def _without_tokens(
    spec: Model, given: Path | None, preprocessing: Preprocessing, share: int
) -> Representative:
    """The inputs of a model that reads audio or images.  Raises as :func:`representative`."""
    embedding = spec.embedding_of(spec.first_stack)
    name = embedding.input_name
    reads = {
        "input_features": (is_audio, _of_recordings if embedding.any_length else _of_audio),
        "input_values": (is_audio, _of_recordings),
        "pixel_values": (is_image, _of_images),
    }
    if name in reads and given is not None:
        suits, read = reads[name]
        if suits(given):
            return read(spec, given, preprocessing, share)
    audio = "audio as .wav files, or "
    files = {"input_features": audio, "input_values": audio, "pixel_values": "images, or "}.get(name, "")
    remedy = f"Give {files}a .npz file with an array {name}."
    if given is None:
        raise NoInputsError(f"{spec.name} takes {name}, which text cannot provide\n  {remedy}")
    raise UserError(
        f"{given}: {spec.name} takes {name}, which text cannot provide\n"
        f"  value: {given.suffix or given.name}\n  {remedy}"
    )


def random_ids(spec: Model, seed: int = 0) -> Representative:
    """Random tokens, for random weights only, to which no text means more than another."""
    generator = torch.Generator().manual_seed(seed)
    assert spec.vocab_size is not None
    stack = spec.first_stack
    length = min(WINDOW, spec.context_length_of(stack) or WINDOW)
    rows = torch.randint(spec.vocab_size, (WINDOWS, length), generator=generator)
    return Representative(f"random token ids, seed {seed}", [], [of_tokens(row[None]) for row in rows])


def _windows(
    spec: Model, name: str, sha256: str, ids: Tensor, prefix: Sequence[int], share: int
) -> Representative:
    """Windows of a token stream, evenly spaced over the calibration part and over the judged part."""
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
    """At most ``count`` windows that do not overlap, from the first token to the last."""
    count = min(most, len(part) // length)
    if not count:
        return []
    step = (len(part) - length) / max(1, count - 1)
    starts = [round(at * step) for at in range(count)] if count > 1 else [0]
    return [part[start : start + length] for start in starts]


def _of_audio(spec: Model, given: Path, preprocessing: Preprocessing, share: int) -> Representative:
    """Spectrograms of audio files."""
    features, sha256 = read_audio(given, preprocessing.log_mel, spec)
    rows = [{"input_features": torch.from_numpy(each)[None]} for each in features]
    return _parted(str(given), sha256, rows, share, _most(spec), "recordings")


def _of_recordings(spec: Model, given: Path, preprocessing: Preprocessing, share: int) -> Representative:
    """Samples or frames of audio files, in pieces of one length: :data:`SECONDS`, or the shortest file."""
    kind = form_kind(spec)
    every = (preprocessing.samples, preprocessing.frames, preprocessing.kaldi)
    form = next((each for each in every if isinstance(each, kind)), None) or kind.usual(spec)
    recordings, sha256 = read_whole(given, form, spec)
    length = min(SECONDS * form.rate // form.column, *(recording.shape[1] for recording in recordings))
    embedding = spec.embedding_of(spec.first_stack)
    mask = {MASK: torch.ones(1, length, dtype=torch.int64)} if embedding.takes_mask else {}
    rows = [
        {embedding.input_name: torch.from_numpy(recording[:, at : at + length]), **mask}
        for recording in recordings
        for at in range(0, recording.shape[1] - length + 1, length)
    ]
    return _parted(str(given), sha256, rows, share, _most(spec), "recordings")


def _of_images(spec: Model, given: Path, preprocessing: Preprocessing, share: int) -> Representative:
    """Pixels of image files."""
    pixels, sha256 = read_images(image_files(given), preprocessing.pixels, spec)
    rows = [{"pixel_values": torch.from_numpy(each)[None]} for each in pixels]
    return _parted(str(given), sha256, rows, share, _most(spec), "images")


_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+")


def _of_sentences(
    spec: Model, name: str, sha256: str, text: str, tokenizer: TextTokenizer, share: int
) -> Representative:
    """Sentences with the special tokens that the tokenizer adds."""
    sentences = [" ".join(found.split()) for found in _SENTENCE.split(text)]
    sentences = [sentence for sentence in sentences if len(sentence) > 1]
    most = max(_most(spec).judged * 2, _most(spec).calibrating * share)
    sentences = (
        [sentences[at * len(sentences) // most] for at in range(most)] if len(sentences) > most else sentences
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
    """The first part of some examples for calibration, and some of the others for judging."""
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
    """The name of the source without its directory: records of an export name no path of this machine."""
    return f"{Path(name).name}, {size}"


def _most(spec: Model) -> _Most:
    """The largest number of examples taken."""
    if spec.architecture == "encoder-decoder":
        takes_tokens = spec.embedding_of(spec.first_stack).takes_tokens
        return _Most(SOURCES_CALIBRATING if takes_tokens else SOURCES, SOURCES)
    return {"encoder": _Most(SENTENCES, SENTENCES), "decoder": _Most(CALIBRATING, WINDOWS)}[spec.architecture]


def _size_of(examples: Sequence[Example]) -> str:
    lengths = {example["input_ids"].shape[1] for example in examples}
    rows = sum(len(example["input_ids"]) for example in examples)
    return f"{rows} x {lengths.pop()} tokens" if len(lengths) == 1 else f"{rows} rows"
