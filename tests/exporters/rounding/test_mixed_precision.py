"""Exports within a size budget: which matrices get more bits, how large the files are, and what cannot be met."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from exporters.export import export
from exporters.exported.load_export import load_export
from exporters.exported.model_source import model_source
from exporters.rounding.bit_choice import Form, Group, choose
from exporters.rounding.size_budget import Size, SizeBudget
from exporters.runtime.exported import open_export
from exporters.steps.manifest import Export
from exporters.steps.options import ExportOptions
from specs.base.errors import UserError
from tests.exporters.quality import checkpoints
from zoo.core.tensors import weight_tensors
from zoo.record.records import MixedRecord
from zoo.weights.blocks import Blocks


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoints.llama(tmp_path_factory.mktemp("llama"))


def exported(origin: Path, directory: Path, budget: str, **options: Any) -> Export:
    given = {"precision": "int4", "target": "cpu", "weights": str(origin)} | options
    return export(model_source(str(origin)).spec, directory, ExportOptions(budget=budget, **given))


def planned(found: Export) -> MixedRecord:
    assert found.manifest.mixed is not None
    return found.manifest.mixed


# ----------------------------------------------------------------------------------------------------------- sizes


@pytest.mark.parametrize(
    ("text", "most", "per_weight"),
    [
        ("105MB", 105e6, False),
        ("1.2 GB", 1.2e9, False),
        ("110000000", 1.1e8, False),
        ("64KiB", 65536, False),
        ("3kb", 3000, False),
        ("4.8bits", 4.8, True),
        ("5 bit", 5, True),
    ],
)
def test_sizes_are_read(text: str, most: float, per_weight: bool) -> None:
    found = SizeBudget.parse(text)
    assert found.most == pytest.approx(most)
    assert found.per_weight == per_weight


@pytest.mark.parametrize("text", ["", "large", "-5MB", "10 parsecs", "0", "0bits", "33bits", "1e6", "MB"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(UserError) as caught:
        ExportOptions(precision="int4", weights="some", budget=text)
    assert str(caught.value).startswith("budget must be ")
    assert f"\n  value: {text!r}\n  Pass a size such as 105MB or 4.8bits." in str(caught.value)


def test_the_smallest_size_named_is_one_that_is_allowed() -> None:
    size = Size(91104, 6.53812)
    for text in ("1MB", "4bits"):
        budget = SizeBudget.parse(text)
        assert SizeBudget.parse(budget.smallest(size)).allows(size)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (
            {"precision": "int8", "weights": "some"},
            "budget applies only to precision int4 or q4f16\n  value: int8",
        ),
        ({"precision": "int4"}, "budget applies only to real weights"),
        ({"precision": "int4", "weights": "none"}, "budget applies only to real weights"),
    ],
)
def test_a_budget_is_for_real_weights_in_int4(options: dict[str, Any], rule: str) -> None:
    with pytest.raises(UserError, match=rule):
        ExportOptions(budget="1MB", **options)


# ----------------------------------------------------------------------------------------------------------- choosing


def group(name: str, size: int) -> Group:
    return Group((name,), Form(Blocks(4, 32), size), Form(Blocks(8, 32), 2 * size))


def test_most_saved_per_byte_comes_first_and_what_does_not_fit_is_passed_over() -> None:
    groups = [group("large", 100), group("small", 10), group("useless", 1), group("cheap", 30)]
    costs: dict[tuple[str, ...], float] = {
        ("large",): 50.0,
        ("small",): 6.0,
        ("useless",): 0.0,
        ("cheap",): 1.0,
    }

    def names(most: int) -> list[str]:
        found = choose(groups, costs, lambda some: sum(each.low.bytes for each in some) <= most)
        return [each.name for each in found]

    assert names(200) == ["small", "large", "cheap"]
    assert names(100) == ["small", "cheap"]
    assert names(9) == []


def test_groups_are_named_after_their_modules() -> None:
    names = tuple(f"decoder.blocks.1.attention.{leaf}.weight" for leaf in ("query", "key", "value"))
    assert Group(names, Form(Blocks(4, 32), 1), None).name == "decoder.blocks.1.attention.query, key, value"


# ----------------------------------------------------------------------------------------------------------- exports


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu", "portable", "cuda"])
@pytest.mark.parametrize("budget", ["7bits", "98000"])
def test_files_are_within_the_budget(llama: Path, tmp_path: Path, target: str, budget: str) -> None:
    found = exported(llama, tmp_path / "out", budget, target=target, verify=target == "cpu")
    mixed, size = planned(found), (tmp_path / "out/model.onnx.data").stat().st_size
    assert size == mixed.size
    if budget == "98000":
        assert 0.95 * 98000 < size <= 98000
    else:
        assert 6.6 < mixed.bits_per_weight <= 7
    bits = {each.bits for each in mixed.groups if each.cost is not None}
    assert bits == {4, 8}
    assert all(each.bits == 8 for each in mixed.groups if "token" in each.name or "head" in each.name)
    assert [each.raised for each in mixed.groups if each.cost is not None].count(True) >= 1


@pytest.mark.slow
def test_the_plan_is_recorded_and_read_back(llama: Path, tmp_path: Path) -> None:
    mixed = planned(exported(llama, tmp_path / "out", "7bits"))
    record = json.loads((tmp_path / "out/export.json").read_text())["mixed"]
    assert record == mixed.model_dump(mode="json")
    costs = [each.cost for each in mixed.groups if each.cost is not None]
    assert costs == sorted(costs, reverse=True)
    model = load_export(open_export(tmp_path / "out"))
    original = load_file(llama / "model.safetensors")
    stored = dict(weight_tensors(model))["decoder.blocks.0.attention.output.weight"]
    (output,) = [each for each in mixed.groups if each.name == "decoder.blocks.0.attention.output"]
    error = (stored - original["model.layers.0.self_attn.o_proj.weight"]).norm() / stored.norm()
    assert float(error) < 0.02 if output.raised else 0.02 < float(error) < 0.25


@pytest.mark.slow
def test_the_layer_on_which_most_depends_gets_more_bits(llama: Path, tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    origin.mkdir()
    for path in llama.iterdir():
        (origin / path.name).write_bytes(path.read_bytes())
    tensors = load_file(origin / "model.safetensors")
    tensors["model.layers.1.mlp.down_proj.weight"][:, ::32] *= 12  # one column of each block
    save_file(tensors, origin / "model.safetensors", {"format": "pt"})
    plain = planned(exported(llama, tmp_path / "a", "6.8bits", verify=False))
    changed = planned(exported(origin, tmp_path / "b", "6.8bits", verify=False))
    name = "decoder.blocks.1.feed_forward.down"
    assert name not in {each.name for each in plain.groups if each.raised}
    assert changed.groups[0].name == name
    assert name in {each.name for each in changed.groups if each.raised}


@pytest.mark.slow
def test_more_bits_lose_less(llama: Path, tmp_path: Path) -> None:
    kl = []
    for budget in ("6.54bits", "7.2bits", "9bits", "40000000"):
        found = exported(llama, tmp_path / budget, budget)
        assert found.quality is not None
        kl.append(found.quality.figures["kl"])
    assert kl[0] > 1.3 * kl[1] > 1.3 * kl[2]


@pytest.mark.slow
def test_the_budget_left_after_8_bits_raises_matrices_to_16(llama: Path, tmp_path: Path) -> None:
    found = exported(llama, tmp_path / "some", "11bits")
    assert {each.bits for each in planned(found).groups} == {8, 16}
    assert found.verification is not None
    assert found.verification.passed
    load_export(open_export(tmp_path / "some"))
    every = planned(exported(llama, tmp_path / "every", "1MB"))
    assert {each.bits for each in every.groups} == {16}
    assert every.bits_per_weight == 16


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"rounding": "nearest"}, {"head_precision": "int4"}, {"asymmetric": True}]
)
def test_with_other_options(llama: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    mixed = planned(exported(llama, tmp_path / "out", "7bits", **options))
    assert mixed.bits_per_weight <= 7
    assert any(each.raised for each in mixed.groups)


@pytest.mark.slow
def test_tables_raised_to_8_bits_have_blocks_as_large_as_other_matrices(llama: Path, tmp_path: Path) -> None:
    mixed = planned(exported(llama, tmp_path / "out", "8.2bits", head_precision="int4", verify=False))
    raised = {each.name: each.blocks for each in mixed.groups if each.raised and each.bits == 8}
    sizes = {name: blocks.size for name, blocks in raised.items() if blocks is not None}
    assert (
        sizes["embedding.token"]
        == sizes["head.vocabulary"]
        == sizes["decoder.blocks.0.attention.output"]
        == 64
    )


@pytest.mark.slow
@pytest.mark.parametrize("make", [checkpoints.bert, checkpoints.t5])
@pytest.mark.parametrize("target", ["cpu", "portable"])
def test_other_architectures(tmp_path: Path, make: Any, target: str) -> None:
    origin = make(tmp_path / "origin")
    low = planned(exported(origin, tmp_path / "low", "8bits", target=target, verify=False))
    found = planned(exported(origin, tmp_path / "out", str(low.size - 4096), target=target))
    assert found.size <= low.size - 4096


@pytest.mark.slow
def test_a_budget_that_cannot_be_met(llama: Path, tmp_path: Path) -> None:
    for budget, place in (("50kB", "0"), ("4bits", "bits")):
        with pytest.raises(UserError) as caught:
            exported(llama, tmp_path / "out", budget)
        message = str(caught.value)
        assert message.startswith("budget must be at least the smallest size")
        assert f"value: {budget}; smallest: " in message
        assert list(tmp_path.iterdir()) == []
        smallest = message.split("Pass budget ")[1].split()[0]
        assert smallest.endswith(place) or smallest.isdigit()
        mixed = planned(exported(llama, tmp_path / "ok", smallest, verify=False))
        assert not any(each.raised for each in mixed.groups)
        for path in (tmp_path / "ok").iterdir():
            path.unlink()
        (tmp_path / "ok").rmdir()


def test_measuring_needs_inputs(tmp_path: Path) -> None:
    origin = checkpoints.vit(tmp_path / "origin")
    with pytest.raises(UserError, match="budget needs representative inputs"):
        exported(origin, tmp_path / "out", "1MB", target="portable")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_decoder_without_a_tokenizer_is_measured_on_its_own_output(tmp_path: Path) -> None:
    origin = checkpoints.llama(tmp_path / "origin", text=False)
    found = exported(origin, tmp_path / "out", "7bits")
    assert planned(found).bits_per_weight <= 7
    assert found.manifest.calibrated_on is not None


@pytest.mark.slow
def test_values_of_16_bits_are_those_of_float16(llama: Path, tmp_path: Path) -> None:
    exported(llama, tmp_path / "out", "1MB", verify=False)
    stored = dict(weight_tensors(load_export(open_export(tmp_path / "out"))))
    original = load_file(llama / "model.safetensors")["model.layers.0.mlp.down_proj.weight"]
    assert torch.equal(stored["decoder.blocks.0.feed_forward.down.weight"], original.half().float())


@pytest.mark.slow
@pytest.mark.parametrize("budget", ["8bits", "12bits"])
def test_the_experts_of_a_mixture_are_raised_together(budget: str, tmp_path: Path) -> None:
    """One operation reads the matrices of a mixture, which have the same blocks."""
    origin = checkpoints.mixtral(tmp_path / "mixtral")
    mixed = planned(exported(origin, tmp_path / "out", budget))
    assert mixed.bits_per_weight <= float(budget.removesuffix("bits"))
    routed = [each for each in mixed.groups if any(".experts." in weight for weight in each.weights)]
    assert any(each.raised for each in routed)
    assert all(len(each.weights) == 3 for each in routed)
