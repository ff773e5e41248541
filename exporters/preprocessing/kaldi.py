"""Audio files as Kaldi's log-mel spectrograms, for wav2vec2-BERT and AST (SeamlessM4TFeatureExtractor and ASTFeatureExtractor of
transformers).

Shapes: samples N, mel bins M, windows W, frames T, frequencies F.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from exporters.preprocessing.audio import Samples
from exporters.preprocessing.fitting import audio_settings, input_shape
from specs.kinds.frames import FramesKind
from specs.model.model import Model

WINDOW, HOP, SIZE = 400, 160, 512
"""The lengths of a window, of the hop and of the Fourier transform, in samples."""

LOWEST, PREEMPHASIS = 20.0, 0.97
"""The lowest frequency of a mel bin in Hz, and the share of the previous sample to subtract."""

FLOOR = 2.0**-23
"""The least power of a mel bin."""


@dataclass(frozen=True)
class KaldiFrames:
    """The spectrogram settings of a checkpoint: the rate in Hz, the bins, and the number of windows per frame."""

    rate: int = 16000
    bins: int = 80
    stride: int = 2

    @classmethod
    def beside(cls, *directories: Path) -> KaldiFrames | None:
        """The settings in the first directory whose preprocessor_config.json has them; None without any."""
        for directory in directories:
            settings = audio_settings(directory)
            names = ("sampling_rate", "num_mel_bins", "stride")
            values = [value for name in names if isinstance(value := settings.get(name), int) and value > 0]
            if len(values) == len(names):
                return cls(*values)
        return None

    @classmethod
    def default(cls, spec: Model) -> KaldiFrames:
        """The settings of every published wav2vec2-BERT, with the features of a model."""
        embedding = spec.embedding_of(spec.first_stack)
        assert isinstance(embedding, FramesKind)
        return (
            cls(bins=embedding.features, stride=1)
            if embedding.features % 2
            else cls(bins=embedding.features // 2)
        )

    @property
    def column(self) -> int:
        """The number of samples from one frame to the next."""
        return HOP * self.stride

    def shortest(self, columns: int) -> int:
        """The number of samples in ``columns`` frames, at least two windows, because normalization needs a variance."""
        return WINDOW + (max(2, columns * self.stride) - 1) * HOP

    @property
    def described(self) -> str:
        """The description of these settings in messages."""
        return f"spectrograms are those of wav2vec2-BERT, at {self.rate // 1000} kHz"

    def values(self, samples: Samples) -> Samples:
        """The log-mel spectrogram, normalized to mean 0 and variance 1 per bin: N -> T (stride M)."""
        signal = samples.astype(np.float64) * 2**15
        logs = _log_mels(signal, np.hanning(WINDOW) ** 0.85, self.rate, self.bins)
        normed = (logs - logs.mean(0)) / np.sqrt(logs.var(0, ddof=1) + 1e-7)
        frames = len(normed) // self.stride
        return normed[: frames * self.stride].reshape(frames, -1).astype(np.float32)


@dataclass(frozen=True)
class FilterBank:
    """The spectrogram settings of a checkpoint of AST: the rate in Hz, the bins, the frames of an input, and the mean and half the
    divisor of normalized values, if they are normalized."""

    rate: int
    bins: int
    frames: int
    mean: float = -4.2677393
    std: float = 4.5689974
    normalizes: bool = True

    hop: ClassVar[int] = HOP

    @classmethod
    def beside(cls, *directories: Path) -> FilterBank | None:
        """The settings in the first directory whose preprocessor_config.json has them; None without any."""
        for directory in directories:
            settings = audio_settings(directory)
            sizes = [settings.get(name) for name in ("sampling_rate", "num_mel_bins", "max_length")]
            rate, bins, frames = (size if type(size) is int and size > 0 else 0 for size in sizes)
            mean, std = settings.get("mean"), settings.get("std")
            scaled = isinstance(mean, int | float) and isinstance(std, int | float) and bool(std)
            if rate and bins and frames and scaled:
                return cls(rate, bins, frames, mean, std, bool(settings.get("do_normalize", True)))  # type: ignore[arg-type]
        return None

    @classmethod
    def default(cls, spec: Model) -> FilterBank:
        """The settings of the AST of AudioSet, with the frames and bins of a model."""
        frames, bins = input_shape(spec)
        return cls(16000, bins, frames)

    @property
    def length(self) -> int:
        """The length of an input, in samples."""
        return WINDOW + (self.frames - 1) * HOP

    @property
    def described(self) -> str:
        """The description of these settings in messages."""
        return f"spectrograms are those of AST, at {self.rate // 1000} kHz"

    def features(self, samples: Samples) -> Samples:
        """The log-mel spectrogram: N -> T M.  Samples are cut to the length of an input, and frames padded with zeros before they
        are normalized."""
        padded = np.pad(samples, (0, max(0, WINDOW - len(samples)))).astype(np.float64)
        logs = _log_mels(padded, np.hanning(WINDOW), self.rate, self.bins)[: self.frames]
        logs = np.pad(logs, ((0, self.frames - len(logs)), (0, 0)))
        return ((logs - self.mean) / (2 * self.std) if self.normalizes else logs).astype(np.float32)


def _log_mels(
    signal: npt.NDArray[np.float64], shape: npt.NDArray[np.float64], rate: int, bins: int
) -> npt.NDArray[np.float64]:
    """The log-mel spectrogram of a signal, with a shape of its windows: N and WINDOW -> W M."""
    windows = np.lib.stride_tricks.sliding_window_view(signal, WINDOW)[::HOP]  # W WINDOW
    windows = windows - windows.mean(1, keepdims=True)
    before = np.concatenate((windows[:, :1], windows[:, :-1]), 1)
    power = np.abs(np.fft.rfft((windows - PREEMPHASIS * before) * shape, SIZE)) ** 2  # W F
    return np.asarray(np.log(np.maximum(power @ _filters(rate, bins).T, FLOOR)))


def _filters(rate: int, bins: int) -> npt.NDArray[np.float64]:
    """Triangular mel filters, evenly spaced in mels from :data:`LOWEST` to half the rate: M F."""
    frequencies = _mel(np.arange(SIZE // 2 + 1) * rate / SIZE)  # F
    corners = np.linspace(_mel(LOWEST), _mel(rate // 2), bins + 2)  # M + 2
    slopes = frequencies - corners[:, None]  # M + 2, F
    widths = np.diff(corners)[:, None]
    return np.asarray(np.maximum(0, np.minimum(slopes[:-2] / widths[:-1], -slopes[2:] / widths[1:])))


def _mel(hertz: Any) -> Any:
    return 1127.0 * np.log(1.0 + hertz / 700.0)
