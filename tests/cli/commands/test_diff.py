"""``zoo diff`` as a user meets it."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import torch

from tests.cli.process import ZOO, environment, in_terminal, tables, zoo
from tests.cli.program import done, invoke
from zoo.components.feed_forward import MLP

LIKE_LLAMA = [
    "position.kind=rope", "decoder.block.norm.kind=rms_norm",
    "decoder.block.feed_forward.kind=gated", "decoder.block.feed_forward.activation=silu",
]  # fmt: skip
SETS = [part for change in LIKE_LLAMA for part in ("--set", change)]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs ``zoo`` with some arguments in an empty directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")

    def call(*arguments):
        words = [*map(str, arguments)]
        brief = {"--quiet", "-q", "--json"}.intersection(words)
        verbose = ["-v"] if words[0] == "diff" and not brief else []
        return invoke(*words, *verbose)

    return call


@pytest.fixture(scope="module")
def exports(tmp_path_factory) -> Path:
    """A directory with three exports of a tiny model: one, the same again, and one in int8."""
    place = tmp_path_factory.mktemp("exports")
    for name, options in {"one": [], "again": [], "int8": ["--precision", "int8"]}.items():
        arguments = ["export", "tiny-gpt", "--no-verify", *options, "-o", str(place / name)]
        done(*arguments)
    return place


# ------------------------------------------------------------------------------------------------------- output


GOLDEN = """\
--- A gpt2: decoder, 12 layers, 768 wide
+++ B gpt2+4-changes-f605e3: decoder, 12 layers, 768 wide
- position: {kind: learned, offset: 0}
+ position: {kind: rope, theta: 10000.0, dimensions: 64, layout: half_split}
- decoder.block.feed_forward: {kind: mlp, hidden: 3072, activation: gelu_tanh, bias: true, dropout: 0.0}
+ decoder.block.feed_forward: {kind: gated, hidden: 3072, activation: silu, bias: true, dropout: 0.0}
- decoder.block.norm: {kind: layer_norm, eps: 1.0e-05, bias: true}
+ decoder.block.norm: {kind: rms_norm, eps: 1.0e-06}

    module                  kind                    weights                        parameters A   parameters B         B - A         FLOPs
──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    embedding               tokens                                                   39,383,808     38,597,376      -786,432
-     position              learned                                                     786,432                     -786,432
    decoder                 Stack                                                    85,056,000    113,385,216   +28,329,216   +58.0 GFLOP
      blocks.0-11 x12       pre_norm                                                 85,054,464    113,384,448   +28,329,984   +58.0 GFLOP
~       feed_forward        mlp → gated                                              56,669,184     85,017,600   +28,348,416   +58.0 GFLOP
+         gate              Linear                  weight 3072 x 768, bias 3072                    28,348,416   +28,348,416   +58.0 GFLOP
~       attention_norm      layer_norm → rms_norm   bias 768 → none                      18,432          9,216        -9,216
~       feed_forward_norm   layer_norm → rms_norm   bias 768 → none                      18,432          9,216        -9,216
~     final_norm            layer_norm → rms_norm   bias 768 → none                       1,536            768          -768

cost                                 A             B         B - A   B / A
──────────────────────────────────────────────────────────────────────────
parameters                 124,439,808   151,982,592   +27,542,784    1.22
without embedding tables    85,056,000   113,385,216   +28,329,216    1.33
prefill of 1,024 tokens      292 GFLOP     350 GFLOP   +58.0 GFLOP    1.20
step after 1,023 tokens      285 MFLOP     341 MFLOP   +56.6 MFLOP    1.20
weights in fp16               248.9 MB      304.0 MB      +55.1 MB    1.22
cache per token                36.9 kB       36.9 kB          same
cache of 1,024 tokens          37.7 MB       37.7 MB          same
training state with Adam        2.0 GB        2.4 GB     +440.7 MB    1.22

FLOPs of matrix products; bytes in fp16, training state without activations
"""


def test_gpt2_against_a_variant_with_the_parts_of_llama(run):
    result = run("diff", "gpt2", *SETS)
    assert result.exit_code == 1
    assert "\n".join(line.rstrip() for line in tables(result.stdout).splitlines()) + "\n" == GOLDEN


def test_json_has_all_of_it(run):
    result = run("diff", "gpt2", *SETS, "--json", "--batch", 4, "--length", 100)
    assert result.exit_code == 1
    data = json.loads(result.stdout)
    assert (data["same"], data["same_architecture"], data["exports"]) == (False, False, None)
    assert data["sizes"] == {"batch": 4, "length": 100, "past": 100}
    assert data["a"] == {"name": "gpt2", "parameters": 124_439_808}
    assert data["set"] == [
        "position.kind=rope", "decoder.block.norm.kind=rms_norm",
        "decoder.block.feed_forward.kind=gated", "decoder.block.feed_forward.activation=silu",
    ]  # fmt: skip
    assert data["spec"][0] == {
        "path": "position",
        "a": {"kind": "learned", "offset": 0},
        "b": {
            "kind": "rope",
            "theta": 10000.0,
            "dimensions": 64,
            "layout": "half_split",
            "rotates": "queries_and_keys",
            "scaling": None,
            "query_scaling": None,
            "sections": None,
            "frequencies": "computed",
        },
        "follows": False,
    }
    assert {each["path"]: each["follows"] for each in data["spec"]} == {
        "position": False, "decoder.final_norm": True,
        "decoder.block.feed_forward": False, "decoder.block.norm": False,
    }  # fmt: skip
    modules = {each["path"]: each for each in data["modules"]}
    assert len([path for path in modules if path.endswith("feed_forward.gate")]) == 12
    assert modules["decoder.blocks.0.feed_forward.gate"]["a"] is None
    assert modules["decoder.blocks.0.feed_forward.gate"]["b"]["flops"] == 2 * 4 * 100 * 768 * 3072
    assert {each["name"]: each["unit"] for each in data["costs"]}["prefill"] == "FLOPs"


@pytest.mark.slow
def test_set_options_are_printed_unless_given(run):
    result = run("diff", "gpt2", "gpt2-medium")
    typed = "--set d_model=1024 --set decoder.layers=24 --set decoder.block.attention.heads=16 --set decoder.block.feed_forward.hidden=4096"
    assert f"\nB is A with {typed}\n" in result.stdout
    assert "B is A with" not in run("diff", "gpt2", "--set", "decoder.layers=3").stdout
    assert (
        "\nB is A with 25 --set options (listed by --json)\n" in run("diff", "t5-small", "bart-base").stdout
    )
    quoted = "--set 'decoder.layers=[{pattern: [{use: local}, {repeat: 1}], repeat: 21}]'"
    assert quoted in run("diff", "gemma2-2b", "gemma2-9b").stdout


@pytest.mark.slow
def test_equal_differences_of_encoder_and_decoder_are_merged(run):
    result = run("diff", "t5-small", "--set", "encoder.layers=2", "--set", "decoder.layers=2")
    assert "- {encoder,decoder}.layers: 6\n+ {encoder,decoder}.layers: 2\n" in result.stdout
    local = [
        "--set", "decoder.layers=[{pattern: [{use: local}, {}], repeat: 6}]", "--set",
        "decoder.blocks.local.attention.window=9",
    ]  # fmt: skip
    assert (
        "+ decoder.block.attention.window: 9  # layers 0, 2, ..., 10\n" in run("diff", "gpt2", *local).stdout
    )
    local[1] = "decoder.layers=[{repeat: 2}, {use: local, repeat: 4}, {repeat: 5}, {use: local}]"
    assert "+ decoder.block.attention.window: 9  # layers 2-5, 11\n" in run("diff", "gpt2", *local).stdout


def test_dual_encoders(run):
    """A change of one stack is told with the name of the stack, in the spec, in modules and in cost."""
    result = run("diff", "clip-vit-b32", "clip-vit-b16")
    assert result.exit_code == 1
    assert "--- A clip-vit-b32: dual-encoder, 12 + 12 layers, 512 + 768 wide\n" in result.stdout
    assert "- image.embedding.patch_size: 32\n+ image.embedding.patch_size: 16\n" in result.stdout
    assert "B is A with --set image.embedding.patch_size=16\n" in result.stdout
    modules = [line for line in result.stdout.splitlines() if "EmbeddingTable" in line]
    assert len(modules) == 1
    assert "50 x 768 → 197 x 768" in modules[0]
    assert "\n    text  " not in result.stdout  # nothing differs there
    changed = run("diff", "clip-vit-b32", "--set", "text.head.pooling=last")
    assert "- text.head.pooling: {token: highest}\n+ text.head.pooling: last\n" in changed.stdout


def test_a_part_that_only_one_has_is_written_as_in_a_spec(run):
    result = run("diff", "bert-base", "bart-base")
    assert (
        "\n+ decoder:\n+   causal: true\n+   layers: 6\n+   block:\n+     kind: post_norm\n" in result.stdout
    )


def test_a_list_of_modules_that_only_one_has_is_shown_as_its_members(run):
    lines = run("diff", "idefics2-8b", "llava-1.5-7b").stdout.splitlines()
    (found,) = (line.split() for line in lines if "ResamplerLayer" in line)
    assert found[:4] == ["-", "layers.0-2", "x3", "ResamplerLayer"]
    assert found[-1] != found[-2]
    assert "-651,202,560" in found


def test_depth_bounds_the_table(run):
    shallow = run("diff", "gpt2", "gpt2-medium", "--depth", 2).stdout
    assert "blocks.0-11 x12" in shallow
    assert "attention_norm" not in shallow
    assert "module" not in run("diff", "gpt2", "gpt2-medium", "--depth", 0).stdout


def test_a_narrow_terminal_shows_what_fits(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("diff", "gpt2", "llama-3-8b").stdout.splitlines()
    assert ["~", "query", "Linear", "+194,239,488", "+398", "GFLOP"] in [line.split() for line in lines]
    assert "80 columns have no room for parameters A, parameters B, weights." in lines
    assert not any("…" in line for line in lines)


# ---------------------------------------------------------------------------------------------------- sameness


def test_the_same_and_the_status(run):
    Path("mine.yaml").write_text("extends: bert-base\nname: mine\n")
    result = run("diff", "bert-base", "mine.yaml")
    assert (result.exit_code, tables(result.stdout)) == (
        0,
        "--- A bert-base: encoder, 12 layers, 768 wide\n+++ B mine.yaml: encoder, 12 layers, 768 wide\n\n"
        "The specs are equal.\n",
    )
    assert json.loads(run("diff", "bert-base", "mine.yaml", "--json").stdout)["same"]


def test_brief_prints_only_that_they_differ(run):
    for option in ("-q", "--quiet"):
        result = run("diff", "bert-base", "bert-large", option)
        assert (result.exit_code, result.stdout) == (1, "bert-base and bert-large differ.\n")
        result = run("diff", "bert-base", "bert-base", option)
        assert (result.exit_code, result.stdout) == (0, "")


def test_differences_in_training_only_are_marked(run):
    result = run("diff", "gpt2", "--set", "decoder.block.dropout=0.0", "--set", "initialization.std=0.01")
    assert result.exit_code == 1
    assert (
        "Both models compute the same function; they differ in training or in the longest input.\n"
        in result.stdout
    )


# ----------------------------------------------------------------------------------------------------- exports


@pytest.mark.slow
def test_equal_exports_have_no_differences(run, exports):
    result = run("diff", exports / "one", exports / "again")
    assert result.exit_code == 0
    assert "The specs are equal, and both exports have the same options and weights.\n" in result.stdout
    assert json.loads(run("diff", exports / "one", exports / "again", "--json").stdout)["exports"] == []
    assert run("diff", exports / "one", "tiny-gpt").exit_code == 0


def test_exports_of_one_spec_differ_in_how_they_were_exported(run, exports):
    result = run("diff", exports / "one", exports / "int8")
    assert result.exit_code == 1
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["precision", "fp32", "int8"] in lines
    data = json.loads(run("diff", exports / "one", exports / "int8", "--json").stdout)
    assert data["spec"] == []
    sizes = [(exports / name / "model.onnx.data").stat().st_size for name in ("one", "int8")]
    assert {"path": ["files", "model.onnx.data"], "a": sizes[0], "b": sizes[1]} in data["exports"]


def test_the_measured_error_is_not_a_difference(run, exports, tmp_path):
    for name, measured in (("a", 1e-7), ("b", 2e-7)):
        shutil.copytree(exports / "one", tmp_path / name)
        build = json.loads((tmp_path / name / "build.json").read_text())
        comparison = {
            "case": "one token", "shape": "1 x 1", "output": "logits", "max_abs": measured, "max_rel": 1e-7,
            "tolerance": 2e-5, "top_token": 1.0, "passed": True, "fault": "",
        }  # fmt: skip
        build["verification"] = {
            "passed": True, "subject": "the model itself", "provider": "CPUExecutionProvider",
            "runtime": "onnxruntime", "ran": "the files", "comparisons": [comparison],
        }  # fmt: skip
        (tmp_path / name / "build.json").write_text(json.dumps(build))
    result = run("diff", "a/", "b/")
    assert result.exit_code == 0
    assert ["verification", "max_abs", "1.0e-07", "2.0e-07"] in [
        line.split() for line in result.stdout.splitlines()
    ]
    result = run("diff", exports / "one", "a/")
    assert result.exit_code == 1
    assert ["verification", "passed", "True"] in [line.split() for line in result.stdout.splitlines()]


def test_other_weights_are_a_difference(run, exports, tmp_path):
    run("export", "tiny-gpt", "--no-verify", "--seed", 1, "-o", tmp_path / "seed")
    result = run("diff", exports / "one", "seed")
    assert result.exit_code == 1
    assert "\nWeights: 26 of 52 common weights differ\n  differ: " in result.stdout
    assert tables(result.stdout).rstrip().endswith(", and 16 more")
    found = json.loads(run("diff", exports / "one", "seed", "--json").stdout)
    assert (len(found["weights"]["differ"]), found["weights"]["same"]) == (
        26,
        26,
    )  # norms and biases are alike
    assert "embedding.token.weight" in found["weights"]["differ"]
    assert found["integrity"]["a"] == {"intact": True, "contents_compared": True, "changes": []}
    other = json.loads(run("diff", exports / "one", exports / "int8", "--json").stdout)["weights"]
    assert "decoder.blocks.0.attention.query.weight" in other["only_a"]


def test_changed_files_are_reported_with_their_weights(run, exports, tmp_path):
    shutil.copytree(exports / "one", tmp_path / "touched")
    manifest = json.loads((exports / "one/export.json").read_text())
    place = manifest["tensors"]["model.onnx.data"]["decoder.blocks.1.feed_forward.up.weight"]
    with (tmp_path / "touched/model.onnx.data").open("r+b") as file:
        file.seek(place["offset"] + 5)
        file.write(b"\x01\x02\x03")
    told = (
        "touched has changed since it was exported: model.onnx.data has other contents than export.json records: "
        "decoder.blocks.1.feed_forward.up.weight "
    )
    result = run("diff", exports / "one", "touched")
    assert (result.exit_code, told in f"{' '.join(result.stderr.split())} ") == (1, True)
    unread = run("diff", exports / "one", "touched", "--no-digests")
    assert (unread.exit_code, unread.stderr) == (0, "")
    assert (
        "touched: file sizes match its record. Contents were not compared; pass --digests to compare them.\n"
        in unread.stdout
    )
    (tmp_path / "touched/model.onnx").unlink()
    with (tmp_path / "touched/model.onnx.data").open("ab") as file:
        file.write(b"x")
    result = run("diff", exports / "one", "touched", "--json", "--no-digests")
    changes = json.loads(result.stdout)["integrity"]["b"]["changes"]
    assert result.exit_code == 1
    assert [(each["file"], each["kind"]) for each in changes] == [
        ("model.onnx", "missing"),
        ("model.onnx.data", "size"),
    ]


def test_another_file_than_weights_can_differ(run, tmp_path):
    spec = ["gpt2", "--set", "d_model=16", "--set", "decoder.layers=1", "--set", "vocab_size=50"]
    spec += ["--set", "decoder.block.attention.heads=2"]
    for name in ("a", "b"):
        assert run("convert", *spec, "-o", f"{name}-origin").exit_code == 0
        (tmp_path / f"{name}-origin/vocab.txt").write_text(name)
        weights = ("--weights", f"{name}-origin", "--no-verify", "-o", name)
        assert run("export", *spec, *weights).exit_code == 0
    result = run("diff", "a", "b", "--json")
    digests = [hashlib.sha256(name).hexdigest() for name in (b"a", b"b")]
    assert result.exit_code == 1
    assert json.loads(result.stdout)["exports"] == [
        {"path": ["files", "vocab.txt", "sha256"], "a": digests[0], "b": digests[1]}
    ]
    assert json.loads(result.stdout)["weights"]["differ"] == []


# ------------------------------------------------------------------------------------------------------ errors


def test_wrong_input_has_status_2(run, tmp_path, exports):
    (tmp_path / "empty").mkdir()
    shutil.copytree(exports / "one", tmp_path / "broken")
    (tmp_path / "broken/export.json").write_text("{")
    shutil.copytree(exports / "one", tmp_path / "strange")
    (tmp_path / "strange/export.json").write_text("[]")
    told = {
        (
            "gpt2",
        ): "Only one model to compare: gpt2.\n  Pass a second model, or change the first with --set, as in --set position.kind=rope.\n",
        ("gpt2", "gtp2"): "Did you mean 'gpt2'?",
        (
            "gpt2",
            "empty",
        ): "empty is neither an export nor a checkpoint: it has no export.json, no config.json and no spec.yaml.\n",
        ("gpt2", "broken"): "broken/export.json is not JSON: ",
        ("gpt2", "strange"): "strange/export.json does not belong to an export\n  Export the model again.\n",
        ("gpt2", "--set", "decoder.layrs=3"): "Did you mean 'layers'?",
        ("gpt2", "bert-base", "--length", "513"): "--length must fit the context of bert-base\n",
    }  # fmt: skip
    for arguments, message in told.items():
        result = run("diff", *arguments)
        assert (result.exit_code, result.stdout) == (2, ""), arguments
        assert message in result.stderr
    result = run("diff", "gpt2", "--json")
    assert (result.exit_code, "errors" in json.loads(result.stdout)) == (2, True)


def test_a_component_that_cannot_be_traced_is_compared_without_flops(run, monkeypatch, tmp_path):
    monkeypatch.setattr(
        MLP, "forward", lambda self, x: self.down(self.inner(self.up(x) + torch.full((1,), 0.25)))
    )
    spec = tmp_path / "wide.yaml"  # no other test reads this spec, whose costs would be remembered
    spec.write_text("extends: tiny-gpt\ndecoder: {block: {feed_forward: {hidden: 212}}}\n")
    result = run("diff", str(spec), "--set", "decoder.layers=2")
    assert result.exit_code == 1
    assert "FLOPs are not available: decoder.blocks.0.feed_forward cannot be traced: " in result.stdout
    assert "blocks.2-3 x2" in result.stdout
    assert "prefill" not in result.stdout


# ----------------------------------------------------------------------------------------------------- colours


@pytest.mark.slow
def test_colours_are_for_terminals(tmp_path):
    arguments = ("diff", "gpt2", "--set", "decoder.layers=3", "--depth", "0")
    assert "\x1b[" not in zoo(*arguments, env=environment()).stdout
    shown, _ = in_terminal([*ZOO, *arguments], tmp_path)
    assert "\x1b[31m- decoder.layers: 12\x1b[0m\r\n\x1b[32m+ decoder.layers: 3\x1b[0m\r\n" in shown


def test_other_values_than_the_defaults_that_resolved_specs_omit_are_shown(run):
    changes = [
        "position={kind: rope, rotates: input}",
        "decoder.block.norm={kind: rms_norm, unit_offset: true}",
    ]
    lines = run("diff", "gpt2", *(f"--set={change}" for change in changes)).stdout.splitlines()
    assert (
        "+ position: {kind: rope, theta: 10000.0, dimensions: 64, layout: half_split, rotates: input}"
        in lines
    )
    assert "+ decoder.block.norm: {kind: rms_norm, eps: 1.0e-06, unit_offset: true}" in lines
