"""``zoo run`` on recordings: the transcript of the reference, by the checkpoint's own vocabulary."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from exporters.layouts.ctc_tokenizer import collapsing_tokenizer
from exporters.runtime.text import TextTokenizer
from exporters.runtime.transcripts import CharacterVocabulary, collapsed, separated, spoken_text
from tests.cli.program import as_json, done, invoke, refused
from tests.exporters.preprocessing.test_audio import recorded
from tests.parity.speech import (
    WORDS,
    generated,
    moonshine_of,
    parakeet_of,
    parakeet_processor,
    processor_of,
    reference_of,
)


@pytest.mark.slow
def test_the_transcript_is_that_of_the_reference(tmp_path: Path) -> None:
    origin, sounds = tmp_path / "reference", tmp_path / "sounds"
    for place in (origin, sounds):
        place.mkdir()
    reference = reference_of(origin)
    done("import", origin, "-o", tmp_path / "letters.yaml")
    export = ["export", tmp_path / "letters.yaml", "--weights", origin, "-o", tmp_path / "onnx"]
    done(*export)
    expected, processor = [], processor_of(origin)
    for name, seconds in (("a", 0.4), ("bb", 0.7)):
        path = recorded(sounds / f"{name}.wav", seconds)
        samples = np.frombuffer(path.read_bytes()[44:], "<i2").astype(np.float32) / 32768
        given = processor(samples, sampling_rate=16000, return_tensors="pt")
        with torch.no_grad():
            labels = reference(given.input_values).logits.argmax(-1)
        expected.append(processor.batch_decode(labels)[0])
    result = invoke("run", tmp_path / "onnx", "--audio", sounds)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [f"a.wav -> {expected[0]}", f"bb.wav -> {expected[1]}"]
    assert expected[0] != expected[1]
    assert "2 recordings in " in result.stderr
    one = ["run", tmp_path / "onnx", "--audio", sounds / "bb.wav"]
    assert invoke(*one).stdout == f"{expected[1]}\n"
    data = as_json(*one)
    assert data["recordings"] == ["bb.wav"]
    assert data["transcripts"][0]["text"] == expected[1]
    for name in ("vocab.json", "tokenizer_config.json"):
        (tmp_path / "onnx" / name).unlink()
    assert invoke(*one).stdout == ",".join(map(str, data["transcripts"][0]["ids"])) + "\n"


@pytest.mark.slow
def test_the_transcript_of_a_spectrogram_is_that_of_the_reference(tmp_path: Path) -> None:
    origin, sounds = tmp_path / "reference", tmp_path / "sounds"
    for place in (origin, sounds):
        place.mkdir()
    reference, processor = parakeet_of(origin), parakeet_processor()
    done("import", origin, "-o", tmp_path / "pieces.yaml")
    done("export", tmp_path / "pieces.yaml", "--weights", origin, "-o", tmp_path / "onnx")
    expected = []
    for name, seconds in (("a", 0.9), ("bb", 1.37)):
        path = recorded(sounds / f"{name}.wav", seconds)
        samples = np.frombuffer(path.read_bytes()[44:], "<i2").astype(np.float32) / 32768
        given = processor(samples, sampling_rate=16000)
        with torch.no_grad():
            labels = reference(**given).logits.argmax(-1)[0, : -(-(len(samples) // 160) // 8)]
        expected.append(processor.decode(labels.tolist(), skip_special_tokens=True).strip())
    result = done("run", tmp_path / "onnx", "--audio", sounds)
    assert result.splitlines() == [f"a.wav -> {expected[0]}", f"bb.wav -> {expected[1]}"]
    assert len(set(expected)) == 2
    done("eval", tmp_path / "onnx", "--against", origin, "--data", sounds)
    done("attend", tmp_path / "pieces.yaml", "--weights", origin, "--audio", sounds / "a.wav", "--json")


@pytest.mark.slow
def test_an_encoder_decoder_generates_for_each_recording(tmp_path: Path) -> None:
    origin, sounds = tmp_path / "reference", tmp_path / "sounds"
    for place in (origin, sounds):
        place.mkdir()
    reference = moonshine_of(origin)
    done("import", origin, "-o", tmp_path / "moon.yaml")
    done("export", tmp_path / "moon.yaml", "--weights", origin, "-o", tmp_path / "onnx")
    expected = []
    for name, seconds in (("a", 0.4), ("bb", 0.7)):
        path = recorded(sounds / f"{name}.wav", seconds)
        samples = np.frombuffer(path.read_bytes()[44:], "<i2").astype(np.float32) / 32768
        expected.append(",".join(map(str, generated(reference, torch.from_numpy(samples), 5))))
    options = ["--max-new-tokens", "5", "--stop", "999"]
    result = done("run", tmp_path / "onnx", "--audio", sounds, *options)
    assert result.splitlines() == [f"a.wav -> {expected[0]}", f"bb.wav -> {expected[1]}"]
    one = invoke("run", tmp_path / "onnx", "--audio", sounds / "bb.wav", *options)
    assert one.stdout == f"{expected[1]}\n"


@pytest.mark.parametrize("lower", [False, True])
def test_labels_become_the_text_of_the_reference(tmp_path: Path, lower: bool) -> None:
    processor = processor_of(tmp_path, lower=lower)
    processor.tokenizer.save_pretrained(tmp_path)
    vocabulary = CharacterVocabulary.beside(tmp_path)
    assert vocabulary is not None
    generator = np.random.default_rng(1)
    for _ in range(50):
        labels = generator.choice(len(WORDS), 30, p=[0.3, 0, 0, 0.05, 0.15, *[0.5 / 6] * 6]).tolist()
        assert vocabulary.text(collapsed(labels, blank=0)) == processor.tokenizer.decode(labels)


def test_a_tokenizer_that_drops_repetitions_keeps_those_that_are_said() -> None:
    tokenizer = parakeet_processor().tokenizer.backend_tokenizer
    plain = TextTokenizer(Tokenizer.from_str(tokenizer.to_str()), Path("tokenizer.json"))
    stated = collapsing_tokenizer(json.loads(tokenizer.to_str()), blank=10)
    assert stated is not None
    collapsing = TextTokenizer(Tokenizer.from_str(json.dumps(stated)), Path("tokenizer.json"))
    said = [2, 1, 1, 4, 5, 6, 1, 1, 1]
    assert [separated(said, 10, each) for each in (plain, collapsing)] == [
        said,
        [2, 1, 10, 1, 4, 5, 6, 1, 10, 1, 10, 1],
    ]
    assert {spoken_text(said, 10, None, each) for each in (plain, collapsing)} == {"tee on theee"}
    assert collapsing.text([2, 2, 10, 1, 10, 10, 1, 4, 4, 5]) == "tee on"
    assert collapsing_tokenizer(stated, blank=10) is None
    assert collapsing_tokenizer(json.loads(tokenizer.to_str()), blank=11) is None


def test_repetitions_are_dropped_before_blanks() -> None:
    assert collapsed([0, 5, 5, 0, 5, 6, 6, 0, 0], blank=0) == [5, 5, 6]
    assert collapsed([], blank=3) == []


@pytest.mark.slow
def test_a_model_of_speech_takes_recordings_alone(tmp_path: Path) -> None:
    done(
        "export", "wav2vec2-base-960h", "--set", "encoder.layers=1", "--set", "expect={}", "--no-verify", "-o",
        tmp_path / "out",
    )  # fmt: skip
    message = refused("run", tmp_path / "out", "--ids", "1,2")
    assert "takes input_values, which --ids does not give\n  Pass --audio." in message
    path = recorded(tmp_path / "a.wav", 0.3)
    result = invoke("run", tmp_path / "out", "--audio", path)
    assert result.exit_code == 0, result.output
    assert "There is no preprocessor_config.json: recordings are read at 16 kHz" in result.stderr
