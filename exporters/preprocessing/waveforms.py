"""Audio files as the samples that wav2vec2 and Moonshine read (Wav2Vec2FeatureExtractor of transformers).

Shapes: samples N.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from exporters.preprocessing.audio import Samples, read_recordings
from exporters.preprocessing.fitting import PREPROCESSOR
from specs.errors import UserError
from specs.model import Model
from specs.waveform import FilteredWaveform
from zoo.checkpoints.carried import stated_in

RATE = 16000
"""The samples per second of every published model."""


@dataclass(frozen=True)
class Waveforms:
    """The settings of a checkpoint: samples per second, and whether a recording gets mean 0 and variance 1."""

    rate: int = RATE
    normalize: bool = True

    @classmethod
    def beside(cls, *directories: Path) -> Waveforms | None:
        """The settings in the first directory whose preprocessor_config.json has them; None without any."""
        for directory in directories:
            stated = stated_in(directory / PREPROCESSOR)
            rate, size = stated.get("sampling_rate"), stated.get("feature_size")
            if isinstance(rate, int) and rate > 0 and size == 1:
                return cls(rate, stated.get("do_normalize", True) is True)
        return None

    @classmethod
    def usual(cls, spec: Model) -> Waveforms:
        """The settings of every published model with the same kind of embedding: trained filters read samples as they are."""
        return cls(normalize=not isinstance(spec.embedding_of(spec.first_stack), FilteredWaveform))

    def values(self, samples: Samples) -> Samples:
        """The input of a model: N -> N."""
        if not self.normalize:
            return samples
        return np.asarray((samples - samples.mean()) / np.sqrt(samples.var() + 1e-7), np.float32)


def read_waveforms(given: Path, form: Waveforms | None, spec: Model) -> tuple[list[Samples], str]:
    """The inputs of a model, 1 N each, from a .wav file or from each in a directory, and the SHA-256 of what the files hold.

    Without the settings of a checkpoint, they are the usual ones.  Raises
    :class:`specs.errors.UserError` for unsuitable files, and for recordings shorter than a frame.
    """
    form = form or Waveforms.usual(spec)
    recordings, digest = read_recordings(given, form.rate)
    least = spec.embedding_of(spec.first_stack).input_length(1)
    shortest = min(map(len, recordings))
    if shortest < least:
        raise UserError(
            f"{given}: a recording must have at least {least} samples for {spec.name}\n"
            f"  value: {shortest} samples\n  Give a longer recording."
        )
    return [form.values(samples)[None] for samples in recordings], digest
