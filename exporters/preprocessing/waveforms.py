"""Audio files as samples, for wav2vec2 and Moonshine (Wav2Vec2FeatureExtractor of transformers).

Shapes: samples N.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from exporters.preprocessing.audio import Samples
from exporters.preprocessing.fitting import audio_settings
from specs.kinds.waveform import FilteredWaveform
from specs.model.model import Model

RATE = 16000
"""The sampling rate of every published model, in Hz."""


@dataclass(frozen=True)
class Waveforms:
    """The settings of a checkpoint: the sampling rate in Hz, and whether recordings are normalized to mean 0 and variance 1."""

    rate: int = RATE
    normalize: bool = True

    @classmethod
    def beside(cls, *directories: Path) -> Waveforms | None:
        """The settings in the first directory whose preprocessor_config.json has them; None without any."""
        for directory in directories:
            settings = audio_settings(directory)
            rate, size = settings.get("sampling_rate"), settings.get("feature_size")
            if isinstance(rate, int) and rate > 0 and size == 1:
                return cls(rate, settings.get("do_normalize", True) is True)
        return None

    @classmethod
    def default(cls, spec: Model) -> Waveforms:
        """The settings of every published model with the same kind of embedding: learned filters take unnormalized samples."""
        return cls(normalize=not isinstance(spec.embedding_of(spec.first_stack), FilteredWaveform))

    @property
    def column(self) -> int:
        """The number of samples from one value to the next."""
        return 1

    def shortest(self, columns: int) -> int:
        """The number of samples in ``columns`` values."""
        return columns

    @property
    def described(self) -> str:
        """The description of these settings in messages."""
        normalized = ", with mean 0 and variance 1" if self.normalize else ""
        return f"recordings are read at {self.rate // 1000} kHz{normalized}"

    def values(self, samples: Samples) -> Samples:
        """The input of a model: N -> N."""
        if not self.normalize:
            return samples
        return np.asarray((samples - samples.mean()) / np.sqrt(samples.var() + 1e-7), np.float32)
