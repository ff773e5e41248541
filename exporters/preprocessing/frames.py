"""Audio files as log-mel spectrograms of any length, for Parakeet (ParakeetFeatureExtractor of transformers).

Shapes: samples N, mel bins M, frames T, frequencies F.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from exporters.preprocessing.audio import Samples, mel_filters
from exporters.preprocessing.fitting import audio_settings
from specs.kinds.frames import FramesKind
from specs.model.model import Model


@dataclass(frozen=True)
class LogMelFrames:
    """The spectrogram settings of a checkpoint: the rate in Hz, the bins, the lengths of the Fourier transform, of its window and
    of the hop in samples, and the share of the previous sample to subtract (pre-emphasis)."""

    rate: int = 16000
    bins: int = 80
    size: int = 512
    window: int = 400
    hop: int = 160
    preemphasis: float = 0.97

    @classmethod
    def beside(cls, *directories: Path) -> LogMelFrames | None:
        """The settings in the first directory whose preprocessor_config.json has them; None without any."""
        for directory in directories:
            settings = audio_settings(directory)
            names = ("sampling_rate", "feature_size", "n_fft", "win_length", "hop_length")
            values = [value for name in names if isinstance(value := settings.get(name), int) and value > 0]
            if len(values) == len(names):
                return replace(cls(*values), preemphasis=float(settings.get("preemphasis") or 0.0))
        return None

    @classmethod
    def default(cls, spec: Model) -> LogMelFrames:
        """The settings of every published Parakeet, with the bins of a model."""
        embedding = spec.embedding_of(spec.first_stack)
        assert isinstance(embedding, FramesKind)
        return cls(bins=embedding.features)

    @property
    def column(self) -> int:
        """The number of samples from one frame to the next."""
        return self.hop

    def shortest(self, columns: int) -> int:
        """The number of samples in ``columns`` frames, at least two frames, because normalization needs a variance."""
        return max(2, columns) * self.hop

    @property
    def described(self) -> str:
        """The description of these settings in messages."""
        return f"spectrograms are those of Parakeet, at {self.rate // 1000} kHz"

    def values(self, samples: Samples) -> Samples:
        """The log-mel spectrogram, normalized to mean 0 and variance 1 per bin: N -> T M."""
        signal = samples.astype(np.float64)
        signal[1:] -= self.preemphasis * samples[:-1]
        padded = np.pad(signal, self.size // 2)
        frames = np.lib.stride_tricks.sliding_window_view(padded, self.size)[:: self.hop]
        frames = frames[: len(samples) // self.hop]  # T size
        hann = np.pad(np.hanning(self.window), (self.size - self.window) // 2)
        power = np.abs(np.fft.rfft(frames * hann, self.size)) ** 2  # T F
        logs = np.log(power @ mel_filters(self.rate, self.size, self.bins).T + 2.0**-24)  # T M
        return ((logs - logs.mean(0)) / (logs.std(0, ddof=1) + 1e-5)).astype(np.float32)
