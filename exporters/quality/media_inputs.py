"""Representative inputs from files of audio and of images, alone or with texts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from exporters.preprocessing import Preprocessing
from exporters.preprocessing.audio import is_audio, read_audio
from exporters.preprocessing.images import image_files, is_image, read_images
from exporters.preprocessing.recordings import form_kind, read_whole
from exporters.quality.examples import MASK
from exporters.quality.pairs import HOW, read_pairs
from exporters.quality.parts import NoInputsError, Representative, batched, most_of, parted
from exporters.runtime.text import TextTokenizer
from specs.base.errors import UserError
from specs.model.model import Model

SECONDS = 5
"""The length of a recording, unless one is shorter."""


def of_pairs(
    spec: Model, given: Path | None, tokenizer: TextTokenizer | None, preprocessing: Preprocessing, share: int
) -> Representative:
    """Images with their texts.  Raises as :func:`representative`."""
    if given is None:
        raise NoInputsError(
            f"{spec.name} reads images with their texts, and the corpus has no images\n  {HOW}"
        )
    rows, sha256 = read_pairs(spec, given, tokenizer, preprocessing)
    found = parted(str(given), sha256, rows, share, most_of(spec), "images with texts")
    calibration, judged = (batched(spec, part) for part in (found.calibration, found.judged))
    return replace(found, calibration=calibration, judged=judged)


def without_tokens(
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


def _of_audio(spec: Model, given: Path, preprocessing: Preprocessing, share: int) -> Representative:
    """Spectrograms of audio files."""
    features, sha256 = read_audio(given, preprocessing.log_mel, spec)
    rows = [{"input_features": torch.from_numpy(each)[None]} for each in features]
    return parted(str(given), sha256, rows, share, most_of(spec), "recordings")


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
    return parted(str(given), sha256, rows, share, most_of(spec), "recordings")


def _of_images(spec: Model, given: Path, preprocessing: Preprocessing, share: int) -> Representative:
    """Pixels of image files."""
    pixels, sha256 = read_images(image_files(given), preprocessing.pixels, spec)
    rows = [{"pixel_values": torch.from_numpy(each)[None]} for each in pixels]
    return parted(str(given), sha256, rows, share, most_of(spec), "images")
