"""``zoo run``: what it prints, as text and as data, and what it refuses."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_sample_images
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

import zoo
from exporters.preprocessing.images import read_images
from exporters.runtime.encoding import EncoderRunner
from exporters.runtime.exported import open_export
from specs.base.errors import UserError
from specs.base.printable import printable
from specs.forms.resolved import resolved
from specs.language.writing import dump
from tests.cli.process import ZOO, environment
from tests.cli.program import as_json, done, invoke
from tests.thinned import one_in
from tests.zoo.tiny import bert, llava, t5, vit

MLM = {"kind": "masked_language_modeling", "norm": {"kind": "layer_norm"}}
TAGS = {"kind": "token_classification", "labels": 3}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of exports, tiny-gpt's with a tokenizer of bytes."""
    place = tmp_path_factory.mktemp("built")
    specs = {
        "bert": bert(),
        "labels": bert(head={"kind": "classification", "labels": 3}),
        "masks": bert(head=MLM, vocab_size=300),
        "tags": bert(head=TAGS),
        "boxes": bert(embedding={"boxes": 9}),
        "t5": t5(),
        "vit": vit(),
    }
    for name, spec in specs.items():
        (place / f"{name}.yaml").write_text(dump(resolved(spec)))
    for name in [*specs, "tiny-gpt"]:
        reference = place / f"{name}.yaml" if name in specs else name
        done("export", reference, "--no-verify", "-o", place / name)
    byte_names = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({name: i for i, name in enumerate(byte_names)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(place / "tiny-gpt" / "tokenizer.json"))
    tokenizer.add_special_tokens(["[MASK]"])
    tokenizer.save(str(place / "tokenizer.json"))
    return place


def refused(*arguments: Any) -> str:
    """What is told of a mistake, with status 2, the same under ``--json``."""
    result, data = invoke("run", *arguments), invoke("run", *arguments, "--json")
    assert (result.exit_code, result.stdout, data.exit_code) == (2, "", 2)
    assert json.loads(data.stdout)["errors"][0]["message"] + "\n" == result.stderr
    return result.stderr


# -------------------------------------------------------------------------------------------------- generating


@pytest.mark.slow
def test_settings_of_the_checkpoint_are_applied_or_named(built, tmp_path):
    """Greedy decoding applies the penalty; beams are named, and so is sampling, which an option asks for."""
    place = shutil.copytree(built / "tiny-gpt", tmp_path / "export")
    stated = {"num_beams": 4, "do_sample": True, "temperature": 0.6, "top_p": 0.9, "no_repeat_ngram_size": 1}
    (place / "generation_config.json").write_text(json.dumps(stated))
    found = invoke("run", place, "--ids", "1,2,3", "--max-new-tokens", 20)
    file = place / "generation_config.json"
    assert f"Not applied, as {file} states it: num_beams: 4." in " ".join(found.stderr.split())
    hint = "Decoding is greedy; --temperature 0.6 samples so."
    assert f"{file} states sampling with temperature 0.6, top_p 0.9. {hint}" in " ".join(found.stderr.split())
    data = as_json("run", place, "--ids", "1,2,3", "--max-new-tokens", 20)
    (sequence,) = data["sequences"]
    assert len({1, 2, 3, *sequence["ids"]}) == 23
    sampled = invoke("run", place, "--ids", "1,2,3", "--seed", 1)
    assert "Decoding is greedy" not in sampled.stderr


def test_wrong_settings_of_the_checkpoint_are_refused(built, tmp_path):
    place = shutil.copytree(built / "tiny-gpt", tmp_path / "export")
    (place / "generation_config.json").write_text('{"repetition_penalty": 0}')
    assert refused(place, "--ids", "1") == (
        f"{place / 'generation_config.json'}: repetition_penalty must be a number above 0\n  value: 0\n"
        "  Correct the field, or remove it.\n"
    )


def test_a_refused_prompt_is_not_printed(built: Path) -> None:
    result = invoke("run", built / "tiny-gpt", "--ids", "1,1000000")
    assert result.exit_code == 2
    assert not result.stdout
    assert result.stderr.startswith("Token ids must be below the vocab_size of ")


def test_a_text_is_continued_as_it_comes(built: Path) -> None:
    result = invoke("run", built / "tiny-gpt", "--text", "Grüße, ", "--max-new-tokens", "8")
    assert result.exit_code == 0
    assert result.stderr.startswith("8 tokens, stopped at --max-new-tokens (8)\nfirst token after ")
    assert " tokens/s; loaded in " in result.stderr
    assert result.stderr.endswith(" on CPU\n")
    data = as_json("run", built / "tiny-gpt", "--text", "Grüße, ", "--max-new-tokens", "8")
    (sequence,) = data["sequences"]
    assert len(sequence["ids"]) == 8
    tokenizer = Tokenizer.from_file(str(built / "tiny-gpt" / "tokenizer.json"))
    assert sequence["prompt_ids"] == tokenizer.encode("Grüße, ").ids
    assert sequence["text"] == tokenizer.decode(sequence["ids"])
    whole = tokenizer.decode(sequence["prompt_ids"] + sequence["ids"])
    shown = printable(whole, keep="\n\t")
    assert shown.startswith(result.stdout[:-1])  # but for bytes that no character has come of yet
    assert len(result.stdout) > len("Grüße, ")
    assert data["tokens_per_second"] > 0
    assert data["load_seconds"] > 0
    assert data["first_token_seconds"] > 0


def test_ids_do_without_a_tokenizer(built: Path) -> None:
    result = invoke("run", built / "t5", "--ids", "3, 4", "--max-new-tokens", "3", "--start", "5")
    assert len(result.stdout.strip().split(",")) == 3
    both = invoke("run", built / "t5", "--ids", "3,4", "--ids", "7", "--max-new-tokens", "3", "--start", "5")
    assert [line.split(" -> ")[0] for line in both.stdout.splitlines()] == ["3,4", "7"]
    assert both.stdout.splitlines()[0].split(" -> ")[1] == result.stdout.strip()


@pytest.mark.slow
def test_draws_depend_on_the_seed(built: Path) -> None:
    command = ["run", built / "tiny-gpt", "--ids", "1,2", "--max-new-tokens", "20", "--top-p", "0.9"]
    found = [invoke(*command, "--seed", seed).stdout for seed in ("1", "1", "2")]
    assert found[0] == found[1] != found[2]
    greedy = invoke(*command[:-2]).stdout
    assert greedy not in found
    assert invoke(*command[:-2], "--top-k", "1").stdout == greedy


def test_a_stop_token_by_its_id_or_its_name_ends_a_text(built: Path) -> None:
    command = ["run", built / "tiny-gpt", "--ids", "1,2", "--max-new-tokens", "20", "--json"]
    (free,) = json.loads(invoke(*command).stdout)["sequences"]
    tokenizer = Tokenizer.from_file(str(built / "tiny-gpt" / "tokenizer.json"))
    for stop in (str(free["ids"][4]), tokenizer.id_to_token(free["ids"][4])):
        (found,) = json.loads(invoke(*command, "--stop", stop).stdout)["sequences"]
        assert found["ids"] == free["ids"][: free["ids"].index(free["ids"][4]) + 1]
        assert found["ending"] == "stop token"


def test_start_and_end_tokens_come_from_the_checkpoint(built: Path) -> None:
    settings = built / "t5" / "generation_config.json"
    command = ["run", built / "t5", "--ids", "3,4", "--max-new-tokens", "3", "--json"]
    (free,) = json.loads(invoke(*command, "--start", "5").stdout)["sequences"]
    settings.write_text(json.dumps({"decoder_start_token_id": 5, "eos_token_id": free["ids"][0]}))
    try:
        (found,) = json.loads(invoke(*command).stdout)["sequences"]
    finally:
        settings.unlink()
    assert (found["ids"], found["ending"]) == (free["ids"][:1], "stop token")


# ---------------------------------------------------------------------------------------------------- encoding


def test_vectors_with_their_cosines(built: Path) -> None:
    command = ["run", built / "bert", "--ids", "1,2,3", "--ids", "4"]
    result = invoke(*command)
    assert "mean of last_hidden_state" in result.stdout
    assert "... 8 numbers" in result.stdout
    assert "cosine" in result.stdout
    assert "2 texts in " in result.stderr
    data = as_json(*command)
    assert [len(vector) for vector in data["vectors"]] == [8, 8]
    assert data["similarities"][0][0] == pytest.approx(1)
    assert f"{data['similarities'][0][1]:.4f}" in result.stdout


def test_classes(built: Path) -> None:
    data = as_json("run", built / "labels", "--ids", "1,2,3")
    assert sum(data["probabilities"][0]) == pytest.approx(1)
    assert f"{max(data['probabilities'][0]):.2%}" in invoke("run", built / "labels", "--ids", "1,2,3").stdout


def test_outputs_of_other_heads_by_name_without_padding(built: Path) -> None:
    command = ["run", built / "tags", "--ids", "1,2,3", "--ids", "4"]
    model = zoo.build(str(built / "tags" / "spec.yaml"), weights="random")
    wanted = [model(torch.tensor([ids]))["logits"][0].tolist() for ids in ([1, 2, 3], [4])]
    data = as_json(*command)
    assert [[*outputs] for outputs in data["outputs"]] == [["logits"], ["logits"]]
    for outputs, logits in zip(data["outputs"], wanted, strict=True):
        np.testing.assert_allclose(outputs["logits"], logits, atol=1e-5)
    result = done(*command)
    first = "  ".join(f"{value:+.4f}" for value in data["outputs"][1]["logits"][0])
    assert [line.split() for line in result.splitlines()[2:]][1] == [
        "4", "logits", "1", "x", "3", *first.split(),
    ]  # fmt: skip


def test_the_best_tokens_for_a_mask(built: Path) -> None:
    command = ["run", built / "masks", "--text", "a[MASK]c", "--tokenizer", built]
    (masks,) = as_json(*command)["masks"]
    ((best, *_),) = masks
    assert f"{best['token']} {best['probability']:.1%}" in invoke(*command).stdout


@pytest.mark.slow
def test_torch_is_not_needed(built: Path) -> None:
    arguments = ["run", str(built / "tiny-gpt"), "--ids", "1,2", "--max-new-tokens", "2"]
    code = (
        f"import os, sys\nsys.modules['torch'] = None\nsys.argv[1:] = {arguments}\n"
        "from cli.main import main\nmain()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


# -------------------------------------------------------------------------------------------------- bad input


@one_in(3)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gone", "--ids", "1"], "gone is not an export (no export.json)\n  Pass a directory that zoo export"),
        (["tokenizer.json", "--ids", "1"], "tokenizer.json is not an export"),
        (["tiny-gpt", "--ids", "1", "--provider", "cpuu"], "--provider must be the name of a provider.\n  value: 'cpuu'\n  Did you mean 'cpu'?\n"),
        (["tiny-gpt"], "No input.\n  Pass --text, or token ids such as --ids 1,2,3.\n"),
        (["bert", "--text", "a"], "--text needs a tokenizer, and there is no tokenizer.json beside the model.\n  Pass --tokenizer"),
        (["bert", "--ids", "1;2"], "--ids must be comma-separated whole numbers.\n  value: '1;2'\n  Pass a list such as 1,2,3."),
        (["bert", "--ids", "1,,2"], "--ids must be comma-separated whole numbers.\n  value: '1,,2'\n"),
        (["bert", "--ids", "1,20"], "Token ids must be below the vocab_size of tiny-bert, which is 20\n  value: 20\n"),
        (["bert", "--ids", "1,2,3,4,5,6,7,8,9,10,11"],
         "A prompt must fit the context of tiny-bert, which is 10 tokens\n  value: 11 tokens\n  Use 10 or fewer.\n"),
        (["bert", "--ids", "1", "--top-k", "3"], "--top-k applies only to decoders, and tiny-bert is an encoder.\n  Remove the option.\n"),
        (["vit", "--ids", "1"], "tiny-vit takes pixel_values, which --ids does not give\n  Pass --image.\n"),
        (["vit"], "No input.\n  Pass --image with a file.\n"),
        (["vit", "--image", "absent.png"], "absent.png cannot be read: No such file or directory.\n  Check the file.\n"),
        (["bert", "--ids", "1", "--image", "a.png"], "tiny-bert takes input_ids, which --image does not give\n  Pass --text.\n"),
        (["masks", "--ids", "1"], "Filling masks needs a tokenizer with a [MASK] or <mask> token.\n  Pass --tokenizer"),
        (["masks", "--text", "a", "--tokenizer", "tokenizer.json"], "No text has a [MASK] token to fill.\n  Replace a word"),
        (["bert", "--ids", "1", "--tokenizer", "bert.yaml"], "bert.yaml is no tokenizer: "),
        (["bert", "--ids", "1", "--tokenizer", "bert"], "bert/tokenizer.json cannot be read: No such file or directory.\n"),
        (["t5", "--ids", "1", "--stop", "</s>"], "--stop needs a tokenizer to look up a token.\n  value: '</s>'\n  Pass the token's id"),
        (["tiny-gpt", "--ids", "1", "--stop", "</s>"], "--stop must be a token of the tokenizer, or a token id\n  value: '</s>'"),
        (["t5", "--ids", "1", "--start", "20"], "Token ids must be below the vocab_size of tiny-t5, which is 20\n  value: 20\n"),
        (["tiny-gpt", "--ids", "1", "--temperature", "-1"], "--temperature must be 0 or more, and finite\n  value: -1.0\n"),
    ],
)  # fmt: skip
def test_models_that_cannot_be_run_are_refused(
    built: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(built)
    assert message in refused(*arguments)


def test_a_checkpoint_is_to_be_exported_first(tmp_path: Path) -> None:
    (tmp_path / "my model").mkdir()
    (tmp_path / "my model" / "config.json").write_text("{}")
    told = refused(tmp_path / "my model", "--ids", "1")
    assert told.endswith(f"It is a checkpoint: export it first, with zoo export '{tmp_path}/my model'.\n")


def test_without_the_library_that_tokenizes(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    told = refused(built / "tiny-gpt", "--text", "a")
    assert told.endswith("tokenizer.json: tokenizing needs a library: pip install 'zoo[text]'\n")
    result = invoke("run", built / "tiny-gpt", "--ids", "1,2", "--max-new-tokens", "2")
    assert result.stdout.startswith("1,2,")


def test_a_graph_without_weights(tmp_path: Path) -> None:
    done("export", "tiny-gpt", "--weights", "none", "--no-verify", "-o", tmp_path / "out")
    told = refused(tmp_path / "out", "--ids", "1")
    assert (
        "out cannot be run: the export has no weights\n  Export it with --weights random or a path.\n" in told
    )


def test_classes_of_images(built: Path, tmp_path: Path) -> None:
    for name, image in zip(("temple", "flower"), load_sample_images().images, strict=True):
        Image.fromarray(image).save(tmp_path / f"{name}.png")
    result = invoke("run", built / "vit", "--image", tmp_path)
    assert result.exit_code == 0
    assert result.stdout.split()[:3] == ["image", "label", "probability"]
    assert "flower.png" in result.stdout
    assert "There is no preprocessor_config.json: images are resized to the model's size" in result.stderr
    assert "2 images in " in result.stderr
    one = ["--image", tmp_path / "flower.png"]
    data = as_json("run", built / "vit", *one)
    assert data["images"] == ["flower.png"]
    (shares,) = data["probabilities"]
    assert sum(shares) == pytest.approx(1)
    export = open_export(built / "vit")
    pixels, _ = read_images([tmp_path / "flower.png"], None, export.spec)
    model = zoo.build(export.spec, weights="random")
    expected = model(torch.from_numpy(pixels)).logits.softmax(-1)[0]
    assert shares == pytest.approx(expected.tolist(), abs=1e-5)


def test_from_python_inputs_must_suit_the_model(built: Path) -> None:
    tokens, pixels = [[1, 2]], np.zeros((1, 3, 8, 8), np.float32)
    with pytest.raises(UserError, match=r"takes pixel_values\n  value: token ids\n  Pass image"):
        EncoderRunner(open_export(built / "vit")).classes(tokens)
    with pytest.raises(UserError, match=r"takes input_ids\n  value: an image or a sound\n  Pass text"):
        EncoderRunner(open_export(built / "bert")).vectors(pixels)


def test_labels_have_the_names_of_the_checkpoint(built: Path, tmp_path: Path) -> None:
    Image.new("RGB", (9, 9)).save(tmp_path / "black.png")
    copy = tmp_path / "named"
    shutil.copytree(built / "vit", copy)
    count = len(as_json("run", copy, "--image", tmp_path)["probabilities"][0])
    names = {str(label): f"animal {label}" for label in range(count)}
    (copy / "config.json").write_text(json.dumps({"id2label": names}))
    assert "animal 0" in invoke("run", copy, "--image", tmp_path).stdout


@pytest.mark.slow
def test_words_about_an_image(tmp_path: Path) -> None:
    Image.new("RGB", (20, 30), "red").save(tmp_path / "red.png")
    small = [
        "vocab_size=50", "encoder.embedding.image_size=32", "encoder.layers=1", "decoder.layers=1", "expect={}",
    ]  # fmt: skip
    changes = [part for change in small for part in ("--set", change)]
    done("export", "vit-gpt2", *changes, "--no-verify", "-o", tmp_path / "out")
    run = [tmp_path / "out", "--image", tmp_path / "red.png", "--max-new-tokens", "4"]
    result = done("run", *run)
    data = as_json("run", *run)
    (sequence,) = data["sequences"]
    assert sequence["image"] == "red.png"
    assert result == ",".join(map(str, sequence["ids"])) + "\n"
    assert len(sequence["ids"]) == 4


@pytest.mark.slow
def test_a_text_about_an_image(built: Path, tmp_path: Path) -> None:
    Image.new("RGB", (9, 9), "red").save(tmp_path / "red.png")
    (tmp_path / "llava.yaml").write_text(dump(resolved(llava(vocab_size=300))))
    done("export", tmp_path / "llava.yaml", "--no-verify", "-o", tmp_path / "out")
    tokenizer = Tokenizer.from_file(str(built / "tiny-gpt" / "tokenizer.json"))
    tokenizer.add_special_tokens(["<s>"])
    first = tokenizer.token_to_id("<s>")
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", first)])
    tokenizer.save(str(tmp_path / "out" / "tokenizer.json"))
    run = ["run", tmp_path / "out", "--image", tmp_path / "red.png", "--max-new-tokens", "4", "--json"]
    ids = [first, *[19] * 4, *tokenizer.encode("ab").ids[1:]]
    results = [
        json.loads(invoke(*run, *each).stdout)["sequences"][0]
        for each in (["--text", "ab"], ["--ids", ",".join(map(str, ids))])
    ]
    assert results[0]["ids"] == results[1]["ids"]


def test_a_graph_that_is_damaged(tmp_path: Path) -> None:
    done("export", "tiny-gpt", "--no-verify", "-o", tmp_path / "out")
    kept = (tmp_path / "out" / "model.onnx.data").read_bytes()
    (tmp_path / "out" / "model.onnx.data").unlink()
    told = refused(tmp_path / "out", "--ids", "1")
    assert told.startswith(
        f"{tmp_path / 'out'} has changed since it was exported: model.onnx.data is missing\n"
    )
    (tmp_path / "out" / "model.onnx.data").write_bytes(kept)
    graph = tmp_path / "out" / "model.onnx"
    graph.write_bytes(b"\xff" * graph.stat().st_size)
    assert "out/model.onnx: ONNX Runtime cannot load it: " in refused(tmp_path / "out", "--ids", "1")


def test_ctrl_c_ends_a_text_that_is_being_generated(tmp_path: Path) -> None:
    long = ["--set", "context_length=30000"]
    done("export", "tiny-gpt", *long, "--no-verify", "-o", tmp_path / "out")
    process = subprocess.Popen(
        [*ZOO, "run", "out", "--ids", "1,2", "--max-new-tokens", "29000"],
        cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.read(20).startswith(b"1,2,")  # it is under way
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert (process.returncode, errors) == (130, b"interrupted\n")


def test_a_text_without_boxes_is_told(built: Path) -> None:
    result = invoke("run", built / "boxes", "--ids", "1,2")
    assert result.exit_code == 0
    assert "Every token has the box 0, 0, 0, 0: a text has no page." in " ".join(result.stderr.split())
    assert "box" not in invoke("run", built / "bert", "--ids", "1,2").stderr
