"""``zoo report``: its tables, its JSON, its options, and how it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import as_json, done, invoke

Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs ``zoo report`` in an empty directory, on one device that needs no measuring unless more are given."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Any:
        devices = () if "--device" in arguments else ("--device", "t4")
        verbose = () if {"--json", "--html"}.intersection(arguments) else ("-v",)
        return invoke("report", *arguments, *devices, *verbose)

    return call


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line]


def test_tables_of_a_decoder(run: Run) -> None:
    result = run("gpt2")
    assert (result.exit_code, result.stderr) == (0, "")
    text = result.stdout
    assert text.startswith("gpt2: 124,439,808 parameters, fp16; 1 x 1,024 tokens, a step after 1,023\n")
    rows = lines(text)
    assert ["attention", "28,348,416", "22.8%"] in rows
    assert "\nhead.vocabulary.weight is embedding.token.weight\n" in text
    assert ["blocks.0-11", "x12,", "each", "17.7", "G", "17.3", "M"] in rows
    assert ["total", "292", "G", "285", "M"] in rows
    assert ["per", "token", "285", "M", "285", "M"] in rows
    assert "cache   36.9 kB per token, 37.7 MB for 1 x 1,024 tokens" in text
    assert (
        "files   fp32 497.9 MB, fp16 249.1 MB, bf16 249.1 MB, int8 132.2 MB, int4 96.5 MB, q4f16 88.5 MB\n"
        in text
    )
    assert ["t4", "4.49", "ms", "compute", "228", "k", "892", "us", "memory", "1.12", "k"] in rows
    assert ["t4", "16.0", "GB", "415", "1,024", "(all)"] in rows
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.slow
def test_tables_of_an_encoder_and_of_both(run: Run) -> None:
    encoder = run("bert-base", "--length", "128").stdout
    assert encoder.startswith("bert-base: 109,482,240 parameters, fp16; 1 x 128 tokens\n")
    assert "cache   " not in encoder
    both = run("t5-small", "--length", "16", "--source-length", "64", "--past", "8", "--batch", "2").stdout
    assert "fp16; 2 x 64 in the encoder, 2 x 16 tokens in the decoder, a step after 8\n" in both
    assert ["module", "encode", "prefill", "step"] in lines(both)
    assert "for 2 x 16 tokens and 64 of the encoder, 12.3 kB each" in both
    assert "1 x 197 vectors" in run("vit-base-16").stdout


@pytest.mark.slow
def test_tables_of_a_dual_encoder(run: Run) -> None:
    """One text and one image: their layers, their heads and the products of their vectors."""
    result = run("clip-vit-b32", "--length", "16")
    assert (result.exit_code, result.stderr) == (0, "")
    text = result.stdout
    assert text.startswith("clip-vit-b32: 151,277,313 parameters, fp16; 1 x 16 tokens, 1 image\n")
    rows = lines(text)
    for module in ("text", "text_head", "image_embedding", "image", "image_head", "head"):
        assert any(row[0] == module and len(row) == 3 for row in rows), module
    assert ["image", "8.59", "G"] in rows
    assert ["image", "8.59", "G"] in lines(run("clip-vit-b32", "--length", "77").stdout)
    assert "cache   " not in text


@pytest.mark.slow
def test_a_mixture_has_its_active_parameters_and_flops(run: Run) -> None:
    text = run("mixtral-8x7b").stdout
    assert text.startswith("mixtral-8x7b: 46,702,792,704 parameters, 12.9B active per token, fp16; ")
    assert "FLOPs: matrix products, 2 m n k each\n" in text
    rows = lines(text)
    assert ["experts", "45,097,156,608", "96.6%", "11,274,289,152"] in rows
    assert ["total", "26.7", "T", "26.0", "G"] in rows
    assert ["per", "token", "26.0", "G", "26.0", "G"] in rows
    assert ["router", "2.15", "G", "2.10", "M"] in rows  # 32 x 2 x 4096 x 8 per token
    assert "router" not in run("gpt2").stdout


@pytest.mark.slow
def test_a_mixture_has_what_a_step_reads(run: Run) -> None:
    result = run("mixtral-8x7b", "--batch", "8")
    assert (
        "Weights read per decoder step: fp16, experts expected if all are equally likely\n" in result.stdout
    )
    rows = lines(result.stdout)
    assert ["1", "2.0", "of", "8", "25.5", "GB"] in rows  # 12.9B active, less the embedding table
    assert ["8", "7.2", "of", "8", "84.1", "GB"] in rows
    assert ["64", "8.0", "of", "8", "93.1", "GB"] in rows
    data = json.loads(run("mixtral-8x7b", "--batch", "8", "--json").stdout)
    reads = data["memory"]["step_reads"]
    assert [each["batch"] for each in reads] == [1, 8, 64]
    assert reads[1]["experts"] == [{"expected": pytest.approx(8 * (1 - 0.75**8)), "total": 8}]
    cached = data["memory"]["cache"]["bytes_per_token"] * 8 * 1025
    assert data["stages"]["step"]["at"]["bytes"] == reads[1]["weights"] + cached
    assert data["stages"]["step"]["at"]["roles"]["router"] == 8 * 32 * 2 * 4096 * 8
    assert "Weights read" not in run("gpt2").stdout
    assert json.loads(run("gpt2", "--json").stdout)["memory"]["step_reads"] == []
    assert ["6", "x", "t4"] in [row[:3] for row in rows]


@pytest.mark.slow
def test_windows_have_their_own_lines(run: Run) -> None:
    text = run("gemma2-2b", "--length", "8192").stdout
    assert (
        "13 layers at most the last 4,096, 13 layers keep all; 872.4 MB if all tokens are kept, as exported"
        in text
    )


def test_formulas_where_asked(run: Run) -> None:
    text = run("gpt2", "--symbolic", "--depth", "0").stdout
    assert [
        "total", "36,864", "B", "T²", "+", "247,064,064", "B", "T", "36,864", "B", "P", "+", "247,100,928", "B",
    ] in lines(text)  # fmt: skip
    assert "backward      73,728 B T² + 494,128,128 B T FLOPs\n" in text
    assert "decoder" not in text


@pytest.mark.slow
def test_depth_shows_more_or_fewer_modules(run: Run) -> None:
    assert "query" in run("gpt2", "--depth", "4").stdout
    assert "query" not in run("gpt2").stdout


@pytest.mark.slow
def test_layers_of_several_kinds_have_lines_each(run: Run) -> None:
    text = run("deepseek-v2-lite").stdout
    names = [row[0] for row in lines(text)]
    assert "keys and values of all heads, as exported; 31.1 kB per token if latents are cached" in text
    assert "blocks.0" in names
    assert "blocks.1-26" in names


def test_json_has_every_module_and_evaluates(run: Run) -> None:
    result = run("gpt2", "--json", "--set", "decoder.layers=2", "--batch", "3", "--length", "10")
    assert result.exit_code == 0
    data = json.loads(result.stdout)
    assert data["name"] == "gpt2+decoder.layers=2"
    assert data["sizes"] == {"batch": 3, "length": 10, "past": 10}
    stage = data["stages"]["prefill"]
    assert {"decoder.blocks.0.attention.query", "decoder.blocks.1.feed_forward.down"} <= set(stage["modules"])
    at = {"B": 3, "T": 10}
    value = 0
    for term in stage["matmul"]:
        product = term["coefficient"]
        for symbol, power in term["powers"].items():
            product *= at[symbol] ** power
        value += product
    assert stage["at"]["matmul"] == value
    assert data["parameters"]["total"] == sum(role["parameters"] for role in data["parameters"]["roles"])
    assert set(data["memory"]["weights"]) == {"fp32", "fp16", "bf16", "int8", "int4", "q4f16"}
    assert data["training"]["at"]["activations"] > data["training"]["at"]["activations_checkpointed"]
    assert data["devices"][0]["roofs"]["step"]["bound"] == "memory"


@pytest.mark.slow
def test_a_device_of_ones_own_and_the_machine_at_hand(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "name: mine\nmemory: 1.0e9\nbandwidth: 10.0e9\nflops: {fp32: 1.0e12}\n"
    )
    text = run("gpt2", "--device", "mine.yaml", "--device", "this", "--precision", "fp32").stdout
    assert {"mine", "this"} <= {row[0] for row in lines(text)}


def test_all_devices_where_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zoo.reports.devices.READ", 8_000_000)
    result = invoke("report", "tiny-gpt", "--json")
    names = [each["device"]["name"] for each in json.loads(result.stdout)["devices"]]
    assert names == ["h200", "h100", "a100", "l40s", "l4", "t4", "this"]


@pytest.mark.slow
def test_few_bits_are_read_as_stored(run: Run) -> None:
    halves, packed = (
        json.loads(run("gpt2", "--precision", each, "--json").stdout)["devices"][0]["roofs"]["step"]
        for each in ("fp16", "int4")
    )
    assert packed["seconds"] < halves["seconds"]


def test_a_model_that_cannot_be_exported_is_reported_without_sizes_in_few_bits(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from specs.base.errors import UserError

    def refuse(spec: object, target: str) -> dict[str, int]:
        raise UserError("no ONNX emitter")

    monkeypatch.setattr("exporters.steps.stored_size.stored_sizes", refuse)
    assert "int8" not in run("gpt2").stdout.split("Memory")[1].splitlines()[1]
    refused = run("gpt2", "--precision", "int4")
    assert (refused.exit_code, refused.stderr) == (2, "no ONNX emitter\n")


WRONG = [
    (["gpt2", "--length", "2000"], "--length must fit the context of gpt2\n  value: 2000\n  Use 1024 or less.\n"),
    (["gpt2", "--device", "h10"], "A device must be a known name, `this`, or a file.\n  value: 'h10'\n  Did you mean 'h100'?\n"
     "  Or pass the path of a YAML file.\n"),
    (["gpt2", "--precision", "fp8"], "Precision 'fp8' is unknown\n  Choose from: fp32, fp16, bf16, int8, int4, q4f16.\n"),
    (["bert-base", "--past", "3"], "--past applies only to decoders, and bert-base is an encoder\n  value: 3\n  Leave it out.\n"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_wrong_input_has_rule_and_remedy(run: Run, arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", message)
    data = run(*arguments, "--json")
    assert (data.exit_code, json.loads(data.stdout)["errors"][0]["message"] + "\n") == (2, message)


def test_an_export_is_reported_in_its_precision_with_its_size_and_how_it_was_verified(
    run: Run, tmp_path: Path
) -> None:
    done("export", "tiny-gpt", "--precision", "int8", "-o", "tiny")
    build = json.loads((tmp_path / "tiny" / "build.json").read_text())
    figures = {"kl": 0.0123, "top_token": 0.91, "perplexity": 60.5}
    build["quality"] = {
        "inputs": "some text",
        "reference": "PyTorch",
        "figures": figures,
        "budget": None,
        "passed": True,
    }
    (tmp_path / "tiny" / "build.json").write_text(json.dumps(build))
    written = (tmp_path / "tiny" / "model.onnx.data").stat().st_size
    data = as_json("report", "tiny", "--device", "t4")
    assert (data["precision"], data["memory"]["weights"]["int8"]) == ("int8", written)
    assert as_json("report", "tiny", "--device", "t4", "--precision", "fp16")["precision"] == "fp16"
    largest = max(comparison["max_abs"] for comparison in build["verification"]["comparisons"])
    for text in (run("tiny").stdout, invoke("report", "tiny", "--device", "t4").stdout):
        assert f"\n  verify  passed, largest difference {largest:.1e} (" in text
        assert (
            "\n  quality KL divergence from float, nats 1.23e-02, same top token 91.00%\n          on some text\n"
            in text
        )
    assert "verify" not in run("tiny", "--set", "name=other").stdout


def test_the_report_of_an_export_says_that_it_was_not_verified(run: Run, tmp_path: Path) -> None:
    done("export", "tiny-gpt", "--no-verify", "-o", "tiny")
    assert "\n  verify  this export was not verified\n" in run("tiny").stdout
    (tmp_path / "tiny" / "build.json").unlink()
    assert "\n  verify  this export was not verified: build.json is missing\n" in run("tiny").stdout
