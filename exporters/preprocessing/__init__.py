"""Files of images and sounds as the inputs of models, by the settings that checkpoints carry."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from exporters.preprocessing.audio import LogMel
from exporters.preprocessing.images import Pixels
from exporters.preprocessing.packed import Packing
from exporters.preprocessing.waveforms import Waveforms


@dataclass(frozen=True)
class Preprocessing:
    """A checkpoint's settings for spectrograms, samples of audio and images, as far as it has any."""

    log_mel: LogMel | None = None
    pixels: Pixels | None = None
    samples: Waveforms | None = None
    packing: Packing = field(default_factory=Packing)

    @classmethod
    def beside(cls, *directories: Path) -> Preprocessing:
        """The settings in the first of some directories that have them."""
        return cls(
            LogMel.beside(*directories),
            Pixels.beside(*directories),
            Waveforms.beside(*directories),
            Packing.beside(*directories),
        )


UNSTATED = Preprocessing()
"""The settings of a checkpoint that has none."""
