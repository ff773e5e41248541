"""Representative inputs from audio files, and from image files with or without texts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from exporters.preprocessing import Preprocessing
from exporters.preprocessing.audio import is_audio, read_audio
from exporters.preprocessing.images import image_files, is_image, read_images
from exporters.preprocessing.kaldi import FilterBank
from exporters.preprocessing.recordings import form_kind, read_whole, spectrogram_kind
from exporters.quality.examples import MASK
from exporters.quality.pairs import HOW, read_pairs
from exporters.quality.parts import NoInputsError, Representative, batched, most_of, parted
from exporters.runtime.text import TextTokenizer
from specs.base.errors import UserError
from specs.model.model import Model

SECONDS = 5
"""The length of the pieces of recordings in seconds, unless a recording is shorter."""


def of_pairs(
    spec: Model, path: Path | None, tokenizer: TextTokenizer | None, preprocessing: Preprocessing, share: int
) -> Representative:
    """Read images with their texts. Raises the errors of :func:`representative`."""
    if path is None:
        raise NoInputsError(
            f"{spec.name} reads images with their texts, and the corpus has no images\n  {HOW}"
        )
    rows, sha256 = read_pairs(spec, path, tokenizer, preprocessing)
    pairs = parted(str(path), sha256, rows, share, most_of(spec), "images with texts")
    calibration, judged = (batched(spec, part) for part in (pairs.calibration, pairs.judged))
    return replace(pairs, calibration=calibration, judged=judged)


def without_tokens(
    spec: Model, path: Path | None, preprocessing: Preprocessing, share: int
) -> Representative:
    """Read the inputs of a model of audio or images. Raises the errors of :func:`representative`."""
    embedding = spec.embedding_of(spec.first_stack)
    name = embedding.input_name
    reads = {
        "input_features": (is_audio, _of_recordings if embedding.any_length else _of_audio),
        "input_values": (is_audio, _of_recordings if embedding.any_length else _of_audio),
        "pixel_values": (is_image, _of_images),
    }
    if name in reads and path is not None:
        suits, read = reads[name]
        if suits(path):
            return read(spec, path, preprocessing, share)
    audio = "audio as .wav files, or "
    files = {"input_features": audio, "input_values": audio, "pixel_values": "images, or "}.get(name, "")
    remedy = f"Give {files}a .npz file with an array {name}."
    if path is None:
        raise NoInputsError(f"{spec.name} takes {name}, which text cannot provide\n  {remedy}")
    raise UserError(
        f"{path}: {spec.name} takes {name}, which text cannot provide\n"
        f"  value: {path.suffix or path.name}\n  {remedy}"
    )


def _of_audio(spec: Model, path: Path, preprocessing: Preprocessing, share: int) -> Representative:
    """Read audio files as spectrograms."""
    patches = spectrogram_kind(spec) is FilterBank
    form = preprocessing.filter_bank or FilterBank.default(spec) if patches else preprocessing.log_mel
    features, sha256 = read_audio(path, form, spec)
    name = spec.embedding_of(spec.first_stack).input_name
    rows = [{name: torch.from_numpy(spectrogram)[None]} for spectrogram in features]
    return parted(str(path), sha256, rows, share, most_of(spec), "recordings")


def _of_recordings(spec: Model, path: Path, preprocessing: Preprocessing, share: int) -> Representative:
    """Read audio files as samples or frames, in pieces of :data:`SECONDS` or the length of the shortest file."""
    kind = form_kind(spec)
    every = (preprocessing.samples, preprocessing.frames, preprocessing.kaldi)
    form = next((settings for settings in every if isinstance(settings, kind)), None) or kind.default(spec)
    recordings, sha256 = read_whole(path, form, spec)
    length = min(SECONDS * form.rate // form.column, *(recording.shape[1] for recording in recordings))
    embedding = spec.embedding_of(spec.first_stack)
    mask = {MASK: torch.ones(1, length, dtype=torch.int64)} if embedding.takes_mask else {}
    rows = [
        {embedding.input_name: torch.from_numpy(recording[:, start : start + length]), **mask}
        for recording in recordings
        for start in range(0, recording.shape[1] - length + 1, length)
    ]
    return parted(str(path), sha256, rows, share, most_of(spec), "recordings")


def _of_images(spec: Model, path: Path, preprocessing: Preprocessing, share: int) -> Representative:
    """Read image files as pixels."""
    pixels, sha256 = read_images(image_files(path), preprocessing.pixels, spec)
    rows = [{"pixel_values": torch.from_numpy(image)[None]} for image in pixels]
    return parted(str(path), sha256, rows, share, most_of(spec), "images")
