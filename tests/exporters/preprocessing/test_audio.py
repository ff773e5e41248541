"""Audio as spectrograms: those of the reference, and clear errors for what is no such audio."""

from __future__ import annotations

import json
import wave
from pathlib import Path

import numpy as np
import pytest
import transformers

from exporters.preprocessing import Preprocessing
from exporters.preprocessing.audio import LogMel, read_audio
from exporters.quality.inputs import representative
from specs.base.errors import UserError
from specs.language.load import load
from specs.model.model import Model

FORM = LogMel(rate=16000, bins=80, window=400, hop=160, length=16000)


@pytest.fixture
def hears() -> Model:
    """A Whisper that reads a second at a time."""
    return load("whisper-tiny", ["encoder.context_length=50"])


def recorded(path: Path, seconds: float = 1.0, rate: int = 16000, channels: int = 1, width: int = 2) -> Path:
    generator = np.random.default_rng(len(path.name))
    samples = generator.normal(0, 3000, (round(seconds * rate), channels)).astype("<i2")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(samples.tobytes() if width == 2 else bytes(samples.size * width))
    return path


@pytest.mark.parametrize("count", [16000, 9000, 20000])
@pytest.mark.parametrize(("bins", "rate"), [(80, 16000), (128, 16000), (40, 24000)])
def test_spectrograms_are_those_of_the_reference(count: int, bins: int, rate: int) -> None:
    form = LogMel(rate, bins, 400, 160, 16000)
    extractor = transformers.WhisperFeatureExtractor(bins, rate, 160, 1, 400)
    extractor.n_samples, extractor.nb_max_frames = 16000, 100
    samples = np.random.default_rng(0).normal(0, 0.1, count).astype(np.float32)
    samples[:4000] *= 1e-4
    wanted = extractor(samples, sampling_rate=rate, return_tensors="np").input_features[0]
    found = form.features(samples)
    assert found.shape == wanted.shape == (bins, 100)
    assert np.abs(found - wanted).max() < 5e-5


def test_long_audio_becomes_several_inputs(hears: Model, tmp_path: Path) -> None:
    features, _ = read_audio(recorded(tmp_path / "a.wav", 2.5, channels=2), FORM, hears)
    assert features.shape == (3, 80, 100)


def test_a_directory_of_recordings_calibrates(hears: Model, tmp_path: Path) -> None:
    for name in ("b", "aa", "ccc", "dddd"):
        recorded(tmp_path / f"{name}.wav")
    found = representative(hears, tmp_path, None, Preprocessing(FORM))
    assert (len(found.calibration), len(found.judged)) == (1, 3)
    first, _ = read_audio(tmp_path / "aa.wav", FORM, hears)
    assert np.array_equal(found.calibration[0]["input_features"][0].numpy(), first[0])


def test_the_form_is_that_of_the_first_directory_that_states_one(tmp_path: Path) -> None:
    stated = {"sampling_rate": 16000, "feature_size": 80, "n_fft": 400, "hop_length": 160, "n_samples": 16000}
    for name, fields in {"a": {}, "b": stated, "c": stated | {"feature_size": 128}}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "preprocessor_config.json").write_text(json.dumps(fields))
    places = [tmp_path / name for name in ("missing", "a", "b", "c")]
    assert LogMel.beside(*places) == FORM
    assert LogMel.beside(*places[:2]) is None


def test_without_settings_spectrograms_are_those_of_whisper() -> None:
    assert LogMel.default(load("whisper-tiny")) == LogMel(16000, 80, 400, 160, 480000)
    assert LogMel.default(load("whisper-large-v3")).bins == 128


def refused(given: Path, form: LogMel | None = FORM) -> str:
    with pytest.raises(UserError) as caught:
        read_audio(given, form, load("whisper-tiny", ["encoder.context_length=50"]))
    return str(caught.value)


def test_unsuitable_audio_is_refused(hears: Model, tmp_path: Path) -> None:
    eight = recorded(tmp_path / "eight.wav", rate=8000)
    assert (
        "16000 samples per second\n  value: 16 bits, 8000 Hz\n  Convert it: ffmpeg -i eight.wav"
        in refused(eight)
    )
    assert "value: 8 bits, 16000 Hz" in refused(recorded(tmp_path / "byte.wav", width=1))
    noise = tmp_path / "noise.wav"
    noise.write_bytes(b"RIFFnoise")
    assert "noise.wav is not a PCM .wav file: " in refused(noise)
    assert "absent.wav cannot be read: No such file or directory" in refused(tmp_path / "absent.wav")
    (tmp_path / "empty").mkdir()
    assert "empty: must have .wav files\n  value: none" in refused(tmp_path / "empty")
    assert "audio needs a preprocessor_config.json next to the weights" in refused(eight, None)
    good = recorded(tmp_path / "good.wav")
    with pytest.raises(
        UserError, match=r"spectrograms must be 80 x 100 for .*\n  value: 80 x 200, from the preprocessor"
    ):
        representative(hears, good, None, Preprocessing(LogMel(16000, 80, 400, 160, 32000)))


def test_sound_needs_inputs(hears: Model, tmp_path: Path) -> None:
    remedy = "Give audio as .wav files, or a .npz file with an array input_features."
    for given in (None, tmp_path / "text.txt"):
        with pytest.raises(UserError) as caught:
            representative(hears, given, None, Preprocessing(FORM))
        assert "takes input_features, which text cannot provide" in str(caught.value)
        assert str(caught.value).endswith(remedy)
