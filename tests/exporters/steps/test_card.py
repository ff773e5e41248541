"""The model card of an export: what it states, and programs that run as they are shown."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
import yaml

from exporters.export import export
from exporters.layouts.purpose import Purpose, purpose_of
from exporters.making.cache import Cache
from exporters.steps.card import base_model_of, card, license_of
from exporters.steps.options import ExportOptions
from specs.language.load import load
from tests.thinned import one_in
from zoo.files.card import CARD, has_own_card
from zoo.record.manifest import read_manifest

REDUCED = {
    "tiny-gpt": (),
    "bert-tiny": (),
    "deit-tiny-16": ("encoder.layers=1", "d_model=16", "encoder.block.attention.heads=2"),
    "t5-small": ("encoder.layers=1", "decoder.layers=1", "vocab_size=50"),
    "whisper-tiny": ("encoder.layers=1", "decoder.layers=1"),
    "gpt2": ("decoder.layers=1", "d_model=40", "decoder.block.attention.heads=2", "vocab_size=100"),
}


def exported(directory: Path, preset: str, **options: Any) -> Path:
    """An export of a preset as it is, or of few layers."""
    export(load(preset, REDUCED[preset]), directory, ExportOptions(**{"verify": False, **options}))
    return directory


def program(directory: Path, language: str = "python") -> str:
    """The program that a card shows."""
    text = (directory / CARD).read_text("utf-8")
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return str(found)


def front_matter(directory: Path) -> dict[str, Any]:
    """The fields that the hub reads."""
    data = yaml.safe_load((directory / CARD).read_text("utf-8").split("---\n")[1])
    assert isinstance(data, dict)
    return data


def printed(directory: Path, tmp_path: Path) -> list[str]:
    """What the program of a card prints."""
    path = tmp_path / "program.py"
    path.write_text(program(directory))
    output = io.StringIO()
    with contextlib.chdir(directory), contextlib.redirect_stdout(output):
        runpy.run_path(str(path))
    return output.getvalue().splitlines()


SHOWN: list[tuple[str, dict[str, Any], str]] = [
    ("tiny-gpt", {}, r"\[ *1 +2 +3 +4 .*"),
    ("tiny-gpt", {"target": "cpu", "precision": "int8", "logits": "last"}, r"\[ *1 +2 +3 +4 .*"),
    ("tiny-gpt", {"target": "tensorrt", "cache_length": 32}, r"\[ *1 +2 +3 +4 .*"),
    ("tiny-gpt", {"precision": "fp16"}, r"\[ *1 +2 +3 +4 .*"),
    ("bert-tiny", {"target": "cpu", "precision": "int8"}, r"last_hidden_state \(1, 4, 128\)"),
    ("deit-tiny-16", {}, r"logits \(1, 1000\)"),
    ("t5-small", {}, r"\[0 .*"),
    ("whisper-tiny", {}, r"\[ *0 .*"),
    ("whisper-tiny", {"precision": "int8"}, r"\[ *0 .*"),  # 8-bit products in one graph, blocks in the other
    ("gpt2", {"precision": "int8"}, r"\[ *1 +2 +3 +4 .*"),  # both in one graph
]


@one_in(16)
@pytest.mark.parametrize(("preset", "options", "first"), SHOWN)
def test_the_program_on_the_card_runs(
    tmp_path: Path, preset: str, options: dict[str, Any], first: str
) -> None:
    directory = exported(tmp_path / "out", preset, **options)
    lines = printed(directory, tmp_path)
    assert any(re.fullmatch(first, line) for line in lines), lines  # ONNX Runtime prints which providers fail
    exact = 'add_session_config_entry("session.x64quantprecision", "1")' in program(directory)
    card = (directory / "README.md").read_text("utf-8")
    used = {node.op_type for path in directory.rglob("*.onnx") for node in onnx.load(path).graph.node}
    assert exact == ("MatMulInteger" in used)
    assert exact == ("On x86-64 processors without VNNI, onnxruntime 1.30.0 or newer computes" in card)


@pytest.mark.parametrize(("preset", "changes", "pipeline", "suffix"), [
    ("tiny-gpt", (), "text-generation", "CausalLM"),
    ("t5-small", (), "text2text-generation", "Seq2SeqLM"),
    ("bert-base-mlm", (), "fill-mask", "MaskedLM"),
    ("bert-base", (), "feature-extraction", "FeatureExtraction"),
    ("bert-base", ("head={kind: classification, labels: 3}",), "text-classification", "SequenceClassification"),
    ("bert-base", ("head={kind: token_classification, labels: 3}",), "token-classification", "TokenClassification"),
    ("bert-base", ("head={kind: question_answering}",), "question-answering", "QuestionAnswering"),
    ("bert-base", ("head={kind: replaced_token_detection}",), None, "FeatureExtraction"),
    ("deit-tiny-16", (), "image-classification", "ImageClassification"),
    ("moonshine-tiny", (), "automatic-speech-recognition", "SpeechSeq2Seq"),
    ("whisper-tiny", (), "automatic-speech-recognition", "SpeechSeq2Seq"),
])  # fmt: skip
def test_the_head_of_a_model_decides_its_pipeline(
    preset: str, changes: tuple[str, ...], pipeline: str | None, suffix: str
) -> None:
    assert purpose_of(load(preset, changes)) == Purpose(pipeline, suffix)


def test_the_card_states_only_the_license_of_the_checkpoint(tmp_path: Path) -> None:
    snapshot = tmp_path / "models--some-org--some-model" / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    assert base_model_of(snapshot) == "some-org/some-model"
    assert base_model_of(tmp_path) is None
    assert license_of(snapshot) == {}
    for text, found in (
        ("---\nlicense: other\nlicense_name: x\ntags: [a]\n---\n# It", {"license": "other", "license_name": "x"}),
        ("---\nlicense: [mit, apache-2.0]\n---\n", {}),
        ("---\nlicense: {\n---\n", {}),
        ("license: mit\n", {}),
    ):  # fmt: skip
        (snapshot / CARD).write_text(text)
        assert license_of(snapshot) == found
    manifest = read_manifest(exported(tmp_path / "out", "tiny-gpt", precision="int8"))
    text = card(load("tiny-gpt"), manifest, "some-org/some-model", {"license": "mit"})
    assert yaml.safe_load(text.split("---\n")[1]) == {
        "license": "mit", "library_name": "onnx", "pipeline_tag": "text-generation",
        "base_model": "some-org/some-model", "base_model_relation": "quantized",
        "tags": ["onnx", "onnxruntime", "zoo", "decoder", "int8", "portable"],
    }  # fmt: skip
    assert front_matter(tmp_path / "out").keys() == {"library_name", "pipeline_tag", "tags"}


def test_the_card_lists_every_file_and_is_not_one_of_them(tmp_path: Path) -> None:
    directory = exported(tmp_path / "out", "tiny-gpt")
    manifest, text = read_manifest(directory), (directory / CARD).read_text("utf-8")
    assert CARD not in manifest.files
    assert all(f"| `{name}` |" in text and file.sha256 in text for name, file in manifest.files.items())
    assert "| parameters | 223,616 |" in text
    assert "active per token" not in text
    of_mixture = card(load("mixtral-8x7b"), manifest, None, {})
    assert "| parameters | 46,702,792,704 |\n| active per token | 12,879,925,248 |\n" in of_mixture


def test_equal_exports_have_equal_cards(tmp_path: Path) -> None:
    first, second = (exported(tmp_path / name, "bert-tiny", verify=name == "a") for name in "ab")
    assert (first / CARD).read_bytes() == (second / CARD).read_bytes()
    assert (first / "export.json").read_bytes() == (second / "export.json").read_bytes()


@pytest.mark.slow
def test_a_card_is_replaced_until_someone_edits_it(tmp_path: Path) -> None:
    directory = exported(tmp_path / "out", "tiny-gpt")
    before = (directory / CARD).read_bytes()
    exported(directory, "tiny-gpt", precision="int8")
    assert (directory / CARD).read_bytes() != before
    for edited in (before.replace(b"# tiny-gpt", b"# Our tiny-gpt"), before + b"\nmore\n", b"mine\n"):
        (directory / CARD).write_bytes(edited)
        assert not has_own_card(directory)
        exported(directory, "tiny-gpt", precision="fp16")
        assert (directory / CARD).read_bytes() == edited
        assert read_manifest(directory).precision == "fp16"
    (directory / CARD).unlink()
    exported(directory, "tiny-gpt")
    assert (directory / CARD).read_bytes() == before


@pytest.mark.parametrize("make", [
    lambda path: path.symlink_to("elsewhere"), lambda path: path.mkdir(), lambda path: path.touch(),
])  # fmt: skip
def test_nothing_of_the_name_of_the_card_is_replaced(tmp_path: Path, make: Callable[[Path], None]) -> None:
    directory = exported(tmp_path / "out", "tiny-gpt")
    (directory / CARD).unlink()
    make(directory / CARD)
    before = (directory / CARD).lstat().st_mode
    exported(directory, "tiny-gpt")
    assert (directory / CARD).lstat().st_mode == before
    assert not has_own_card(directory)
    assert (directory / "export.json").is_file()


def test_editing_a_card_does_not_change_the_cache(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    entry = exported(cache.entry("0" * 64), "tiny-gpt")
    assert cache.place("0" * 64, tmp_path / "out")
    with (tmp_path / "out" / CARD).open("a") as file:
        file.write("mine\n")
    assert has_own_card(entry)
    assert cache.place("0" * 64, tmp_path / "out")
    assert (tmp_path / "out" / CARD).read_text().endswith("mine\n")


@pytest.mark.parametrize(("layout", "preset", "language", "expected"), [
    ("genai", "tiny-gpt", "python", "prompt = [1, 2, 3, 4]"),
    ("optimum", "gpt2", "python", 'model = ORTModelForCausalLM.from_pretrained(".")'),
    ("transformers-js", "gpt2", "javascript", "await AutoModelForCausalLM.from_pretrained(directory)"),
    ("transformers-js", "deit-tiny-16", "javascript", "const sizes = [1, 3, 224, 224];"),
    ("optimum", "t5-small", "python", "model.generate(**inputs, max_new_tokens=20, decoder_start_token_id=0)"),
])  # fmt: skip
def test_every_layout_shows_how_its_client_loads_it(
    tmp_path: Path, layout: str, preset: str, language: str, expected: str
) -> None:
    directory = exported(tmp_path / "out", preset, layout=layout)
    code = program(directory, language)
    assert expected in code
    if language == "python":
        ast.parse(code)
