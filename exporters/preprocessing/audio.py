"""Audio files as log-mel spectrograms of one length, for Whisper (Radford et al., 2022).

Shapes: samples N, mel bins M, frames T, frequencies F.
"""

from __future__ import annotations

import hashlib
import io
import wave
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from exporters.preprocessing.fitting import PREPROCESSOR, audio_settings, check_fit, input_shape, media_bytes
from specs.base.errors import UserError
from specs.model.model import Model

SUFFIX = ".wav"

HIGHEST = 8000.0
"""The highest frequency of a mel bin in Hz, at any sampling rate."""

Samples = npt.NDArray[np.float32]


@dataclass(frozen=True)
class LogMel:
    """The spectrogram settings of a checkpoint: the rate in Hz, the bins, and the window, the hop and the length of an input, all
    in samples."""

    rate: int
    bins: int
    window: int
    hop: int
    length: int

    @classmethod
    def beside(cls, *directories: Path) -> LogMel | None:
        """The settings in the first directory whose preprocessor_config.json has them; None without any."""
        for directory in directories:
            settings = audio_settings(directory)
            names = ("sampling_rate", "feature_size", "n_fft", "hop_length", "n_samples")
            values = [value for name in names if isinstance(value := settings.get(name), int) and value > 0]
            if len(values) == len(names):
                return cls(*values)
        return None

    @classmethod
    def default(cls, spec: Model) -> LogMel:
        """The settings of every published Whisper, with the bins and columns of a model."""
        bins, columns = input_shape(spec)
        return cls(rate=16000, bins=bins, window=400, hop=160, length=160 * columns)

    def features(self, samples: Samples) -> Samples:
        """log10 of the mel spectrogram, within 8 of its maximum, scaled to about -1..1: N -> M T.

        Samples are cut or zero-padded to the length of an input.
        """
        padded = np.zeros(self.length, np.float64)
        padded[: min(self.length, len(samples))] = samples[: self.length]
        padded = np.pad(padded, self.window // 2, mode="reflect")
        frames = np.lib.stride_tricks.sliding_window_view(padded, self.window)[:: self.hop][:-1]  # T window
        hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(self.window) / self.window)
        power = np.abs(np.fft.rfft(frames * hann)) ** 2  # T F
        logs = np.log10(np.maximum(mel_filters(self.rate, self.window, self.bins) @ power.T, 1e-10))
        return ((np.maximum(logs, logs.max() - 8) + 4) / 4).astype(np.float32)

    @property
    def described(self) -> str:
        """The description of these settings in messages."""
        return "spectrograms are those of Whisper, at 16 kHz"


class SpectrogramForm(Protocol):
    """Settings for spectrograms of one size: ``length`` and ``hop`` in samples."""

    @property
    def rate(self) -> int: ...

    @property
    def length(self) -> int: ...

    @property
    def hop(self) -> int: ...

    def features(self, samples: Samples) -> Samples: ...


def read_audio(path: Path, form: SpectrogramForm | None, spec: Model) -> tuple[Samples, str]:
    """Read a .wav file, or all .wav files of a directory in order of name: spectrograms cut into inputs, B M T or B T M, and the SHA-256 of
    the contents.

    Raises :class:`specs.base.errors.UserError` for unsuitable audio files, if ``form`` is missing, and if it gives other sizes
    than the model's.
    """
    if form is None:
        raise UserError(
            f"{path}: audio needs a {PREPROCESSOR} next to the weights, which defines how spectrograms are computed\n"
            "  value: none with sampling_rate, feature_size, n_fft, hop_length and n_samples\n"
            "  Put the checkpoint's own there, or give a .npz file with an array input_features."
        )
    recordings, digest = read_recordings(path, form.rate)
    parts = [
        samples[start : start + form.length]
        for samples in recordings
        for start in range(0, max(1, len(samples)), form.length)
    ]
    spectrograms = np.stack([form.features(part) for part in parts])
    check_fit(path, "spectrograms must be", spectrograms.shape[1:], spec)
    return spectrograms, digest


def read_recordings(path: Path, rate: int) -> tuple[list[Samples], str]:
    """Read a .wav file, or all .wav files of a directory in order of name: samples, and the SHA-256 of the contents.

    Raises :class:`specs.base.errors.UserError` for unsuitable audio files.
    """
    digest, recordings = hashlib.sha256(), list[Samples]()
    for file in audio_files(path):
        samples, content = _samples(file, rate)
        digest.update(content)
        recordings.append(samples)
    return recordings, digest.hexdigest()


def audio_files(path: Path) -> list[Path]:
    """The path of a file, or of a directory's .wav files in order of name. Raises :class:`specs.base.errors.UserError` for none."""
    paths = sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else [path]
    if not paths:
        raise UserError(f"{path}: must have {SUFFIX} files\n  value: none\n  Give a directory that has some.")
    return paths


def is_audio(path: Path) -> bool:
    """Whether a path may hold audio: a .wav file, or a directory."""
    return path.suffix.lower() == SUFFIX or path.is_dir()


def _samples(path: Path, rate: int) -> tuple[Samples, bytes]:
    """The samples of a file from -1 to 1, averaged over channels, and the file's content."""
    try:
        content = media_bytes(path)
        with wave.open(io.BytesIO(content)) as file:
            channels, width, own = file.getnchannels(), file.getsampwidth(), file.getframerate()
            frames = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise UserError(f"{path} is not a PCM {SUFFIX} file: {error}\n  Save it as 16-bit PCM.") from None
    if width != 2 or own != rate:
        raise UserError(
            f"{path}: must have 16 bits per sample and {rate} samples per second\n"
            f"  value: {8 * width} bits, {own} Hz\n  Convert it: ffmpeg -i {path.name} -ar {rate} -c:a pcm_s16le ..."
        )
    values = np.frombuffer(frames, "<i2").reshape(-1, channels).mean(1) / 32768
    return values.astype(np.float32), content


def mel_filters(rate: int, size: int, bins: int) -> npt.NDArray[np.float64]:
    """Triangular mel filters over the frequencies of a transform of ``size`` samples: M F.

    They are evenly spaced on Slaney's mel scale from 0 to :data:`HIGHEST`, each with area 1.
    """
    frequencies = np.linspace(0, rate / 2, size // 2 + 1)  # F
    corners = _hertz(np.linspace(0, _mel(HIGHEST), bins + 2))  # M + 2
    slopes = frequencies - corners[:, None]  # M + 2, F
    widths = np.diff(corners)[:, None]
    rising, falling = slopes[:-2] / widths[:-1], -slopes[2:] / widths[1:]
    triangles = np.maximum(0, np.minimum(rising, falling))
    return np.asarray(triangles * (2 / (corners[2:] - corners[:-2]))[:, None])


_LINEAR, _LOG_FROM = 200 / 3, 1000.0
"""Slaney's mel scale: 200 / 3 Hz per mel up to 1000 Hz, and from there 27 mels for a factor of 6.4."""
_PER_LOG = 27 / np.log(6.4)


def _mel(hertz: float) -> float:
    if hertz < _LOG_FROM:
        return hertz / _LINEAR
    return float(_LOG_FROM / _LINEAR + np.log(hertz / _LOG_FROM) * _PER_LOG)


def _hertz(mels: Any) -> Any:
    start = _LOG_FROM / _LINEAR
    return np.where(mels < start, mels * _LINEAR, _LOG_FROM * np.exp((mels - start) / _PER_LOG))
