"""Whisper with its published weights hears in few bits what it hears in float, and what was said."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from exporters.exported.evaluate import files_of
from exporters.preprocessing.audio import LogMel, read_audio
from exporters.quality.judge import NEW_TOKENS, input_batch
from exporters.runtime.exported import open_export
from exporters.runtime.text import find_text
from tests.cli.program import invoke
from tests.exporters.quality import whisper_tiny
from zoo.record.manifest import read_record

SENTENCE = "he might even have been made amiable himself"
"""One of the recordings, which no precision mistakes."""


@pytest.fixture(scope="module")
def whisper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return whisper_tiny.checkpoint(tmp_path_factory.mktemp("whisper"))


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, str]:
    return whisper_tiny.speech(tmp_path_factory.mktemp("speech"))


def said(directory: Path, recording: Path) -> str:
    """What an export hears in a recording: lower-case words."""
    exported = open_export(directory)
    text = find_text(directory, None, needed=True)
    features, _ = read_audio(recording, LogMel.beside(directory), exported.spec)
    encoder = input_batch(exported.spec, {"input_features": torch.from_numpy(features)})
    start, end = whisper_tiny.CONFIG["decoder_start_token_id"], whisper_tiny.CONFIG["eos_token_id"]
    assert text is not None
    tokens = files_of(exported).greedy(encoder, start, [end], NEW_TOKENS)
    return " ".join(re.findall(r"[a-z]+", text.text(tokens).lower()))


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("precision", "target", "most"),
    [("int8", "portable", 0.004), ("int8", "cpu", 0.0025), ("int4", "cpu", 0.04)],
)
def test_speech_is_heard_in_few_bits(
    whisper: Path, recordings: dict[Path, str], precision: str, target: str, most: float, tmp_path: Path
) -> None:
    """The KL divergence from float, in nats, is at most ``most``: less than with one scale for a whole input of int8, and with nearest
    rounding in int4. Which of two words of nearly equal scores is heard can differ between machines.
    """
    audio, out, spec = next(iter(recordings)).parent, tmp_path / "out", tmp_path / "whisper.yaml"
    zoo("import", whisper, "-o", spec)
    options = ["--precision", precision, "--target", target, "--calibrate", audio]
    zoo("export", spec, "--weights", whisper, *options, "-o", out)
    manifest = read_record(out).manifest
    assert (manifest.calibrated_on is not None) == (precision == "int4")
    judged = zoo("eval", out, "--against", whisper, "--data", audio)
    (divergence,) = re.findall(r"KL divergence from float, nats +([0-9.e-]+)", judged)
    assert float(divergence) <= most
    recording = next(path for path, words in recordings.items() if words == SENTENCE)
    assert said(out, recording) == SENTENCE
    heard = zoo("run", out, "--audio", recording)
    assert " ".join(re.findall(r"[a-z]+", heard.lower().splitlines()[0])) == SENTENCE


def zoo(*arguments: object) -> str:
    """What a command that does its work prints."""
    found = invoke(*map(str, arguments))
    assert found.exit_code == 0, found.output
    return found.output
