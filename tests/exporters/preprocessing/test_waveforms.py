"""Samples of audio: those of the reference, and clear errors for what is too short."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import transformers

from exporters.preprocessing import Preprocessing
from exporters.preprocessing.recordings import read_whole
from exporters.preprocessing.waveforms import Waveforms
from exporters.quality.inputs import representative
from specs.base.errors import UserError
from tests.exporters.preprocessing.test_audio import recorded
from tests.zoo.tiny import moonshine, wav2vec2


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("count", [400, 12345])
def test_samples_are_those_of_the_reference(count: int, normalize: bool) -> None:
    extractor = transformers.Wav2Vec2FeatureExtractor(do_normalize=normalize)
    samples = np.random.default_rng(count).normal(0.1, 0.2, count).astype(np.float32)
    wanted = extractor(samples, sampling_rate=16000, return_tensors="np").input_values[0]
    found = Waveforms(16000, normalize).values(samples)
    assert found.dtype == wanted.dtype == np.float32
    assert np.array_equal(found, wanted)


def test_the_settings_are_those_of_the_checkpoint(tmp_path: Path) -> None:
    assert Waveforms.beside(tmp_path) is None
    transformers.Wav2Vec2FeatureExtractor(sampling_rate=8000, do_normalize=False).save_pretrained(tmp_path)
    assert Preprocessing.beside(tmp_path).samples == Waveforms(8000, normalize=False)
    stated = {"sampling_rate": 16000, "feature_size": 80}  # of spectrograms
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(stated))
    assert Waveforms.beside(tmp_path) is None


def test_recordings_keep_their_lengths(tmp_path: Path) -> None:
    for name, seconds in (("a", 0.5), ("bb", 1.25)):
        recorded(tmp_path / f"{name}.wav", seconds, channels=2)
    found, digest = read_whole(tmp_path, None, wav2vec2())
    assert [each.shape for each in found] == [(1, 8000), (1, 20000)]
    assert len(digest) == 64
    assert abs(float(found[1].mean())) < 1e-6


def test_trained_filters_read_samples_as_they_are(tmp_path: Path) -> None:
    path = recorded(tmp_path / "a.wav", 0.2)
    samples = np.frombuffer(path.read_bytes()[44:], "<i2").astype(np.float32) / 32768
    (found,), _ = read_whole(path, None, moonshine())
    assert np.array_equal(found[0], samples)
    assert not Waveforms.default(moonshine()).normalize


def test_recordings_calibrate_in_pieces_of_one_length(tmp_path: Path) -> None:
    for name, seconds in (("a", 1.0), ("bb", 2.5), ("ccc", 1.0)):
        recorded(tmp_path / f"{name}.wav", seconds)
    found = representative(wav2vec2(), tmp_path, None, Preprocessing(samples=Waveforms()))
    rows = [*found.calibration, *found.judged]
    assert [tuple(row["input_values"].shape) for row in rows] == [(1, 16000)] * 4
    assert all(bool((row["attention_mask"] == 1).all()) for row in rows)
    found = representative(moonshine(), tmp_path, None, Preprocessing())
    assert [list(row) for row in (*found.calibration, *found.judged)] == [["input_values"]] * 4


def test_a_recording_shorter_than_a_frame_is_refused(tmp_path: Path) -> None:
    path = recorded(tmp_path / "a.wav", 19 / 16000)
    with pytest.raises(
        UserError, match=r"must have at least 20 samples for tiny-wav2vec2\n  value: 19 samples"
    ):
        read_whole(path, None, wav2vec2())
