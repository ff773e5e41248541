"""The head for spans beside GLiNER: read, computed, exported, and written back."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnxruntime
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from cli.tables.next_steps import _inputs
from exporters.export import export
from exporters.runtime.encoding import EncoderRunner
from exporters.runtime.exported import open_export
from exporters.runtime.spans import SpanRunner
from exporters.runtime.text import find_text
from exporters.steps.options import ExportOptions
from specs.base.errors import UserError
from specs.language.load import load as load_spec
from tests.cli.program import invoke
from tests.parity.gliner import batch, gliner
from tests.parity.minilm import minilm_directory
from tests.parity.reference import assert_close, load
from tests.zoo import tiny
from tests.zoo.tiny import BLOCK
from zoo import build, functional
from zoo.checkpoints.converting import convert
from zoo.configs.importing import import_spec
from zoo.record.manifest import read_manifest

CASES: list[dict[str, Any]] = [
    {},
    {"layers": 0, "width": 16},
    {"layers": 2, "longest": 1},
    {"family": "bert", "width": 12},
    {"family": "bert", "width": 20, "layers": 0, "longest": 5},
    {"family": "modernbert", "width": 8, "longest": 2},
]


def compared(place: Path, **case: Any) -> tuple[dict[str, Tensor], Tensor]:
    """Compare a model of the library with ours in PyTorch, and return the inputs and the scores."""
    reference, inputs = gliner(place, **case), batch(case.get("longest", 3))
    with torch.no_grad():
        expected = reference(*inputs.values())
        ids, *others = inputs.values()
        ours = load(import_spec(place), place)(ids, **dict(zip([*inputs][1:], others, strict=True))).logits
    assert expected.shape[3] == 3
    assert_close(ours, expected)
    return inputs, expected


def test_scores_of_spans_are_those_of_the_library(tmp_path: Path) -> None:
    compared(tmp_path)


def test_words_are_passed_with_their_spans_and_to_heads_that_score_them_alone(tmp_path: Path) -> None:
    gliner(tmp_path)
    ids = torch.tensor([[3, 1, 4]])
    words = {"words_mask": torch.ones_like(ids)}
    with pytest.raises(
        TypeError, match="words_mask, text_lengths, span_idx, span_mask must be passed together"
    ):
        load(import_spec(tmp_path), tmp_path)(ids, **words)
    with pytest.raises(TypeError, match="unexpected keyword argument 'words_mask'"):
        build(tiny.bert(), weights="random")(ids, **words)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_scores_of_drawn_models_are_those_of_the_library(case: dict[str, Any], tmp_path: Path) -> None:
    inputs, expected = compared(tmp_path, **case)
    spec = import_spec(tmp_path)
    export(spec, tmp_path / "exported", ExportOptions(weights=str(tmp_path)))
    path = tmp_path / "exported" / "model.onnx"
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (scores,) = session.run(None, {name: tensor.numpy() for name, tensor in inputs.items()})
    assert_close(torch.from_numpy(scores), expected)
    (tmp_path / "back").mkdir()
    convert(spec, str(tmp_path), tmp_path / "back")
    assert import_spec(tmp_path / "back", name=spec.name) == spec
    before, after = (load_file(place / "model.safetensors") for place in (tmp_path, tmp_path / "back"))
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], before[name]) for name in before)


@pytest.mark.slow
def test_the_number_of_labels_is_no_other_size_of_the_graph(tmp_path: Path) -> None:
    """Sinks give scores as many columns as tokens and one."""
    head = {"kind": "spans", "label_token": 3, "max_width": 2, "recurrent": {"kind": "lstm"}}
    block = {**BLOCK, "attention": {"kind": "multi_head", "heads": 2, "sinks": True}}
    spec = tiny.bert(encoder={"layers": 1, "block": block}, head=head)
    result = export(spec, tmp_path / "exported", ExportOptions())
    assert result.verification is not None
    assert result.verification.passed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("precision", "target"), [("fp16", "portable"), ("bf16", "portable"), ("int8", "cpu"), ("int4", "cpu")]
)
def test_exports_in_each_precision_are_verified(precision: Any, target: str, tmp_path: Path) -> None:
    gliner(tmp_path, width=32)
    options = ExportOptions(weights="random", precision=precision, target=target)
    result = export(import_spec(tmp_path), tmp_path / "exported", options)
    assert result.verification is not None
    assert result.verification.passed
    unfused = read_manifest(tmp_path / "exported").graphs["model.onnx"].unfused
    kept = "LSTM: head.recurrent.layers.0: its weights stay in floating point"
    assert (kept in unfused) == (precision in ("int8", "int4"))


@pytest.mark.parametrize("layers", [(4, 4, 1), (1, 3, 2)])
def test_an_lstm_reads_both_ways_and_stops_at_the_last_word(layers: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    reference = torch.nn.LSTM(6, 4, bidirectional=True, batch_first=True).double()
    gates = {
        ours: slice(4 * index, 4 * index + 4)
        for index, ours in enumerate(("input", "forget", "cell", "output"))
    }
    order = [gates[name] for name in ("input", "output", "forget", "cell")]

    def parts(name: str) -> list[Tensor]:
        return [getattr(reference, name)[rows] for rows in order]

    ends = ("_l0", "_l0_reverse")
    read, kept = ([part for end in ends for part in parts(f"weight_{side}{end}")] for side in ("ih", "hh"))
    biases = [part for end in ends for side in ("ih", "hh") for part in parts(f"bias_{side}{end}")]
    x, counts = torch.randn(3, 4, 6, dtype=torch.float64), torch.tensor(layers)
    found = functional.lstm(x, counts, tuple(read), tuple(kept), tuple(biases))
    for row, count in enumerate(layers):
        assert torch.allclose(found[row, :count], reference(x[row : row + 1, :count])[0][0], atol=1e-12)
        assert not found[row, count:].any()


REFUSED = {
    "span_mode": ("token_level", "span_mode: must be markerV0"),
    "labels_encoder": (
        "bert",
        "labels_encoder: is not supported: specs cannot express labels with an encoder of their own",
    ),
    "labels_decoder": ("gpt2", "labels_decoder: is not supported"),
    "relations_layer": (
        "dot",
        "relations_layer: is not supported: specs cannot express relations between entities",
    ),
    "fuse_layers": (True, "fuse_layers: is not supported"),
    "post_fusion_schema": ("l2l", "post_fusion_schema: is not supported"),
    "subtoken_pooling": ("mean", "subtoken_pooling: must be first or last"),
    "embed_ent_token": (False, "embed_ent_token: must be true"),
    "class_token_index": (
        -1,
        r"class_token_index: must be the id of the token before each label[\s\S]*save_pretrained",
    ),
    "encoder_config": (None, "model_name: is required"),
}


@pytest.mark.parametrize("field", REFUSED)
def test_other_models_of_the_library_are_refused_by_name(field: str, tmp_path: Path) -> None:
    value, message = REFUSED[field]
    fields: dict[str, Any] = {field: value}
    gliner(tmp_path, **fields)
    with pytest.raises(UserError, match=message):
        import_spec(tmp_path)


def test_a_config_that_names_its_encoder_alone_is_read_as_the_preset(tmp_path: Path) -> None:
    published = {
        **{
            "class_token_index": 128002,
            "dropout": 0.4,
            "encoder_config": None,
            "ent_token": "<<ENT>>",
            "fine_tune": True,
        },
        **{
            "has_rnn": True,
            "hidden_size": 512,
            "max_len": 384,
            "max_width": 12,
            "model_type": "gliner",
            "name": "correct",
        },
        **{"model_name": "microsoft/deberta-v3-small", "span_mode": "markerV0", "vocab_size": 128004, "size_sup": -1},
        **{"lr_encoder": "1e-5", "num_steps": 30000, "transformers_version": "4.38.2", "subtoken_pooling": "first"},
    }  # fmt: skip
    (tmp_path / "gliner_config.json").write_text(json.dumps(published))
    told: list[str] = []
    spec = import_spec(tmp_path, name="gliner-small-v2.1", tell=told.extend)
    preset = load_spec("gliner-small-v2.1")
    assert spec == preset.model_copy(
        update={name: getattr(spec, name) for name in ("summary", "source", "year", "expect")}
    )
    assert set(told) == {"lr_encoder", "num_steps"}
    (tmp_path / "gliner_config.json").write_text(json.dumps({**published, "model_name": "org/unheard-of"}))
    with pytest.raises(UserError, match="must name the encoder of a preset, as there is no encoder_config"):
        import_spec(tmp_path)


@pytest.fixture(scope="module")
def entities_export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export of a drawn model with MiniLM's tokenizer, whose token [MASK] begins labels."""
    place = tmp_path_factory.mktemp("gliner")
    minilm = minilm_directory()
    gliner(place, width=8, longest=2)
    spec = import_spec(place).model_copy(update={"vocab_size": 30522})
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(minilm / name, place / name)
    head = spec.head.model_copy(update={"label_token": 103})
    options = ExportOptions(weights="random", verify=False)
    export(spec.model_copy(update={"head": head}), place / "exported", options)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(minilm / name, place / "exported" / name)
    return place / "exported"


def run(directory: Path, *arguments: str) -> Any:
    """Run ``zoo run``."""
    return invoke("run", str(directory), *arguments)


def test_zoo_run_prints_entities_that_do_not_overlap(entities_export: Path) -> None:
    text = "Ada Lovelace lived in London, unbelievably."
    options = ("--labels", "person, city", "--labels", "city", "--threshold", "0.4", "--text", text)
    result = run(entities_export, *options, "--text", "", "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    entities, none = data["entities"]
    assert none == []
    assert data["texts"] == [text, ""]
    assert entities
    assert all(text[each["start"] : each["end"]] == each["text"] for each in entities)
    assert all(one["end"] <= two["start"] for one, two in itertools.pairwise(entities))
    assert all(each["label"] in ("person", "city") and each["score"] > 0.4 for each in entities)
    assert "Ada" in run(entities_export, *options, "--quiet").stdout


def test_the_run_that_an_export_proposes_finds_entities(entities_export: Path) -> None:
    written: Any = SimpleNamespace(directory=entities_export)
    proposed = _inputs(open_export(entities_export).spec, written)
    assert proposed is not None
    assert "entities" in json.loads(run(entities_export, *proposed, "--json").stdout)


@pytest.mark.parametrize(
    ("pooling", "numbers"), [("first", [1, 2, 0, 0, 0, 0, 3]), ("last", [1, 0, 0, 0, 0, 2, 3])]
)
def test_words_are_numbered_by_the_tokens_that_stand_for_them(
    pooling: str, numbers: list[int], entities_export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tokenizer gives an accent alone no token, so that it is no word."""
    text = "in unbelievably \u0301 ."
    words: list[Any] = []
    run_model = EncoderRunner.of_words

    def recorded(runner: EncoderRunner, ids: Any, mask: Any, given: Any) -> Any:
        words.append(given)
        return run_model(runner, ids, mask, given)

    monkeypatch.setattr(EncoderRunner, "of_words", recorded)
    tokenizer = find_text(entities_export, None, needed=True)
    assert tokenizer is not None
    spans = SpanRunner(EncoderRunner(open_export(entities_export)), tokenizer, {"subtoken_pooling": pooling})
    (found,) = spans.entities([text], ["city"], threshold=0.0)
    assert words[0]["words_mask"][0, -8:-1].tolist() == numbers
    assert words[0]["text_lengths"].tolist() == [[3]]
    assert found[-1].end == len(text)


def test_words_that_are_split_in_another_way_are_refused(entities_export: Path, tmp_path: Path) -> None:
    place = shutil.copytree(entities_export, tmp_path / "exported")
    stated = json.loads((place / "gliner_config.json").read_text())
    (place / "gliner_config.json").write_text(json.dumps({**stated, "words_splitter_type": "jieba"}))
    result = run(place, "--labels", "a", "--text", "a")
    assert result.exit_code == 2
    assert "gliner_config.json: words_splitter_type: must be whitespace" in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--labels", "a,,b", "--text", "a"], "--labels must name labels, separated by commas\n  value: 'a,,b'"),
        (["--labels", "a", "--ids", "1,2"], "--labels needs texts and a tokenizer.json beside the model"),
        (["--threshold", "0.4", "--text", "a"], "--threshold is the score of entities\n  Pass --labels A,B too."),
        (["--labels", "[MASK]", "--text", "a"], "A label must be a word or a few, without [MASK]"),
    ],
)  # fmt: skip
def test_wrong_options_of_entities_are_refused(
    options: list[str], message: str, entities_export: Path
) -> None:
    result = run(entities_export, *options)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_tokenizer_that_splits_the_label_token_is_refused(entities_export: Path, tmp_path: Path) -> None:
    tokenizer = json.loads((entities_export / "tokenizer.json").read_text())
    tokenizer["added_tokens"] = [each for each in tokenizer["added_tokens"] if each["id"] != 103]
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    options = ("--labels", "a", "--text", "a", "--tokenizer", str(tmp_path / "tokenizer.json"))
    result = run(entities_export, *options)
    assert result.exit_code == 2
    assert "splits [MASK], the token before each label, whose id is 103" in result.stderr


def test_labels_are_for_models_that_score_spans(tmp_path: Path) -> None:
    export(load_spec("bert-tiny"), tmp_path / "bert", ExportOptions(weights="random", verify=False))
    result = run(tmp_path / "bert", "--labels", "a", "--ids", "1,2")
    assert result.exit_code == 2
    assert (
        "--labels applies only to models that score spans of words, and the head of bert-tiny is"
        in result.stderr
    )


@pytest.mark.slow
def test_clients_without_a_class_for_spans_are_refused(tmp_path: Path) -> None:
    gliner(tmp_path)
    for layout in ("optimum", "transformers-js"):
        with pytest.raises(UserError, match="it has no class for models that score spans of words"):
            export(import_spec(tmp_path), tmp_path / "out", ExportOptions(weights="random", layout=layout))
    with pytest.raises(
        UserError, match="the number of labels is a value of its input, which the exporter would fix"
    ):
        export(import_spec(tmp_path), tmp_path / "out", ExportOptions(weights="random", via="torch"))
