"""Spectrograms of any length: those of the reference, and clear errors for what is too short."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import transformers

from exporters.preprocessing import Preprocessing
from exporters.preprocessing.frames import LogMelFrames
from exporters.preprocessing.kaldi import FilterBank, KaldiFrames
from exporters.preprocessing.recordings import read_whole
from exporters.quality.inputs import representative
from specs.base.errors import UserError
from specs.language.load import load
from tests.exporters.preprocessing.test_audio import recorded
from tests.zoo.tiny import parakeet


@pytest.mark.parametrize("count", [500, 16000])
@pytest.mark.parametrize("bins", [80, 128])
def test_spectrograms_are_those_of_the_reference(count: int, bins: int) -> None:
    extractor = transformers.ParakeetFeatureExtractor(feature_size=bins, preemphasis=0.9, win_length=300)
    samples = np.random.default_rng(count).normal(0.05, 0.2, count).astype(np.float32)
    wanted = extractor(samples, sampling_rate=16000, return_tensors="np")
    real = wanted.input_features[0][wanted.attention_mask[0].astype(bool)]
    found = LogMelFrames(bins=bins, window=300, preemphasis=0.9).values(samples)
    assert found.shape == real.shape == (count // 160, bins)
    assert np.abs(found - real).max() < 2e-4


@pytest.mark.filterwarnings("ignore:At least one mel filter")
@pytest.mark.parametrize("count", [300, 16000])
def test_filter_banks_of_one_length_are_those_of_the_reference(count: int, tmp_path: Path) -> None:
    extractor = transformers.ASTFeatureExtractor(num_mel_bins=32, max_length=60, mean=-3.0, std=2.5)
    extractor.save_pretrained(tmp_path)
    samples = np.random.default_rng(count).normal(0.05, 0.2, count).astype(np.float32)
    form = FilterBank.beside(tmp_path)
    assert form == FilterBank(16000, 32, 60, -3.0, 2.5)
    long_enough = np.pad(samples, (0, max(0, 400 - count)))  # the reference takes no shorter recording
    wanted = extractor(long_enough, sampling_rate=16000)["input_values"][0]
    assert np.abs(form.features(samples) - wanted).max() < 1e-5


@pytest.mark.parametrize("count", [900, 16000])
@pytest.mark.parametrize(("bins", "stride"), [(80, 2), (40, 3)])
def test_spectrograms_of_kaldi_are_those_of_the_reference(count: int, bins: int, stride: int) -> None:
    extractor = transformers.SeamlessM4TFeatureExtractor(num_mel_bins=bins, stride=stride)
    samples = np.random.default_rng(count).normal(0.05, 0.2, count).astype(np.float32)
    wanted = extractor(samples, sampling_rate=16000, return_tensors="np", pad_to_multiple_of=None)
    found = KaldiFrames(bins=bins, stride=stride).values(samples)
    assert found.shape == wanted.input_features[0].shape
    assert np.abs(found - wanted.input_features[0]).max() < 2e-4
    assert KaldiFrames(bins=bins, stride=stride).shortest(3) == 400 + 160 * (3 * stride - 1)


def test_settings_of_kaldi_are_those_of_the_checkpoint(tmp_path: Path) -> None:
    assert KaldiFrames.beside(tmp_path) is None
    transformers.SeamlessM4TFeatureExtractor(num_mel_bins=40, stride=3).save_pretrained(tmp_path)
    found = Preprocessing.beside(tmp_path)
    assert found.kaldi == KaldiFrames(bins=40, stride=3)
    assert [found.frames, found.samples, found.log_mel] == [None] * 3
    assert KaldiFrames.default(load("w2v-bert-2.0")) == KaldiFrames()


@pytest.mark.parametrize("nested", [False, True])
def test_the_settings_are_those_of_the_checkpoint(nested: bool, tmp_path: Path) -> None:
    assert LogMelFrames.beside(tmp_path) is None
    transformers.ParakeetFeatureExtractor(feature_size=128, hop_length=80).save_pretrained(tmp_path)
    if nested:  # as processors of newer releases store it
        stated = tmp_path / "preprocessor_config.json"
        data = {"processor_class": "ParakeetProcessor", "feature_extractor": json.loads(stated.read_text())}
        (tmp_path / "processor_config.json").write_text(json.dumps(data))
        stated.unlink()
    found = Preprocessing.beside(tmp_path)
    assert found.frames == LogMelFrames(bins=128, hop=80)
    assert found.samples is None
    assert found.log_mel is None


def test_recordings_calibrate_in_pieces_of_one_length(tmp_path: Path) -> None:
    for name, seconds in (("a", 1.0), ("bb", 2.5), ("ccc", 1.0)):
        recorded(tmp_path / f"{name}.wav", seconds)
    found = representative(parakeet(), tmp_path, None, Preprocessing())
    rows = [*found.calibration, *found.judged]
    assert [tuple(row["input_features"].shape) for row in rows] == [(1, 100, 6)] * 4
    assert [tuple(row["attention_mask"].shape) for row in rows] == [(1, 100)] * 4


def test_a_recording_of_one_frame_has_no_variance(tmp_path: Path) -> None:
    path = recorded(tmp_path / "a.wav", 319 / 16000)
    with pytest.raises(
        UserError, match=r"must have at least 320 samples for tiny-parakeet\n  value: 319 samples"
    ):
        read_whole(path, None, parakeet())
