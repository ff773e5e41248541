"""Recordings of any length as model inputs: samples, or frames of a spectrogram."""

from __future__ import annotations

from pathlib import Path

from exporters.preprocessing.audio import LogMel, Samples, read_recordings
from exporters.preprocessing.frames import LogMelFrames
from exporters.preprocessing.kaldi import FilterBank, KaldiFrames
from exporters.preprocessing.waveforms import Waveforms
from specs.base.errors import UserError
from specs.kinds.frames import Frames, SubsampledSpectrogram
from specs.kinds.spectrogram_patches import SpectrogramPatches
from specs.model.model import Model

RecordingForm = Waveforms | LogMelFrames | KaldiFrames
"""A checkpoint's settings for recordings of any length."""


def form_kind(spec: Model) -> type[Waveforms] | type[LogMelFrames] | type[KaldiFrames]:
    """The kind of settings for a model's input."""
    match spec.embedding_of(spec.first_stack):
        case SubsampledSpectrogram():
            return LogMelFrames
        case Frames():
            return KaldiFrames
    return Waveforms


def spectrogram_kind(spec: Model) -> type[LogMel] | type[FilterBank]:
    """The kind of settings for a model's spectrograms of one size."""
    patches = isinstance(spec.embedding_of(spec.first_stack), SpectrogramPatches)
    return FilterBank if patches else LogMel


def read_whole(path: Path, form: RecordingForm | None, spec: Model) -> tuple[list[Samples], str]:
    """Read a .wav file, or all .wav files of a directory, as model inputs, 1 N or 1 T M each, and the SHA-256 of the contents.

    Without a checkpoint's settings, the usual ones apply. Raises :class:`specs.base.errors.UserError` for unsuitable files, and
    for recordings shorter than a frame.
    """
    form = form or form_kind(spec).default(spec)
    recordings, digest = read_recordings(path, form.rate)
    least = form.shortest(spec.embedding_of(spec.first_stack).input_length(1))
    shortest = min(map(len, recordings))
    if shortest < least:
        raise UserError(
            f"{path}: a recording must have at least {least} samples for {spec.name}\n"
            f"  value: {shortest} samples\n  Give a longer recording."
        )
    return [form.values(samples)[None] for samples in recordings], digest
