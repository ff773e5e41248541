"""Preprocessing of image and audio files into model inputs, by the settings of checkpoints."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from exporters.preprocessing.audio import LogMel
from exporters.preprocessing.frames import LogMelFrames
from exporters.preprocessing.images import Pixels
from exporters.preprocessing.kaldi import FilterBank, KaldiFrames
from exporters.preprocessing.packed import Packing
from exporters.preprocessing.waveforms import Waveforms


@dataclass(frozen=True)
class Preprocessing:
    """A checkpoint's preprocessing settings: fixed-length spectrograms, images, audio samples, spectrograms of any length.

    Each is None if the checkpoint has none.
    """

    log_mel: LogMel | None = None
    pixels: Pixels | None = None
    samples: Waveforms | None = None
    frames: LogMelFrames | None = None
    kaldi: KaldiFrames | None = None
    filter_bank: FilterBank | None = None
    packing: Packing = field(default_factory=Packing)

    @classmethod
    def beside(cls, *directories: Path) -> Preprocessing:
        """The settings of each kind in the first directory that has them."""
        kinds = (LogMel, Pixels, Waveforms, LogMelFrames, KaldiFrames, FilterBank, Packing)
        return cls(*(kind.beside(*directories) for kind in kinds))  # type: ignore[arg-type]


UNSTATED = Preprocessing()
"""The settings of a checkpoint without any."""
