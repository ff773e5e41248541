"""Artefacts kept up to date: what is built again, why, and what is not."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import exporters.making.plan
from exporters.making.artefacts import Zoo
from exporters.making.inputs import tool_versions
from exporters.making.lock import Lock
from exporters.making.plan import make_plan
from specs.base.errors import UserError
from specs.language.load import load
from tests.exporters.making.zoos import (
    LOCK,
    Here,
    cache_of,
    make,
    plan_of,
    states,
    two_models,
    write_spec,
    write_zoo,
)
from zoo import build
from zoo.core.tensors import weight_tensors


def why(zoo: object, name: str) -> str:
    return next(step.why for step in plan_of(zoo).steps if step.artefact.name == name)  # type: ignore[arg-type]


def test_everything_is_built_once(tmp_path: Path) -> None:
    zoo = two_models(tmp_path)
    assert {step.why for step in plan_of(zoo).steps} == {"not built yet"}
    executor = Here()
    made = make(zoo, executor=executor)
    assert [each.state for each in made] == ["built"] * 3
    assert executor.ran == ["a/portable-fp32", "a/portable-fp16", "b/portable-fp32"]
    assert (tmp_path / "build" / "a" / "portable-fp16" / "model.onnx").is_file()
    again = Here()
    assert make(zoo, executor=again) == []
    assert again.ran == []


def test_named_blocks_that_state_only_their_changes_are_built(tmp_path: Path) -> None:
    write_spec(tmp_path, "base")
    (tmp_path / "a.yaml").write_text(
        "extends: base.yaml\nname: a\nencoder: {blocks: {wide: {feed_forward: {hidden: 48}}}, layers: [{use: wide}]}\n"
    )
    zoo = write_zoo(tmp_path, "models: {a: {spec: a.yaml, options: {verify: false}}}\n")
    assert [result.state for result in make(zoo)] == ["built"]
    assert load(tmp_path / "build/a/portable-fp32/spec.yaml") == load(tmp_path / "a.yaml")


def test_one_changed_spec_rebuilds_its_artefacts_with_the_reason(tmp_path: Path) -> None:
    zoo = two_models(tmp_path)
    make(zoo)
    write_spec(tmp_path, "a", hidden=32)
    assert states(plan_of(zoo)) == {
        "a/portable-fp32": "build",
        "a/portable-fp16": "build",
        "b/portable-fp32": "current",
    }
    assert why(zoo, "a/portable-fp16") == "encoder.block.feed_forward.hidden 24 \u2192 32"


def test_a_spec_written_in_another_way_changes_nothing(tmp_path: Path) -> None:
    zoo = two_models(tmp_path)
    make(zoo)
    spec = tmp_path / "b.yaml"
    spec.write_text("# a comment\n" + spec.read_text().replace("{kind: learned}", "\n  kind: learned"))
    assert not plan_of(zoo).stale


def test_changed_weights_options_seeds_and_versions_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zoo = two_models(tmp_path)
    text = zoo.path.read_text()
    make(zoo)
    write_zoo(tmp_path, text.replace("b: {spec: b.yaml}", "b: {spec: b.yaml, seed: 1}"))
    assert why(zoo, "b/portable-fp32") == "weights random, seed 0 \u2192 random, seed 1"
    write_zoo(tmp_path, text.replace("verify: false", "verify: true"))
    assert why(zoo, "b/portable-fp32") == "verify no \u2192 yes"
    write_zoo(tmp_path, text)
    newer = {**tool_versions(), "torch": "99.0"}
    monkeypatch.setattr(exporters.making.plan, "tool_versions", lambda: newer)
    assert why(zoo, "b/portable-fp32") == f"torch {tool_versions()['torch']} \u2192 99.0"
    assert len(plan_of(zoo).stale) == 3


def test_weights_count_by_their_contents(tmp_path: Path) -> None:
    two_models(tmp_path)
    zoo = write_zoo(
        tmp_path, "models: {a: {spec: a.yaml, weights: a.safetensors, options: {verify: false}}}\n"
    )

    def save(seed: int) -> None:
        model = build(tmp_path / "a.yaml", "random", seed=seed)
        save_file(dict(weight_tensors(model)), tmp_path / "a.safetensors")

    save(0)
    make(zoo)
    os.utime(tmp_path / "a.safetensors", (1, 1))
    assert not plan_of(zoo).stale
    save(1)
    assert why(zoo, "a/portable-fp32").startswith("weights files ")
    assert [each.state for each in make(zoo)] == ["built"]


def test_earlier_builds_come_from_the_cache(tmp_path: Path) -> None:
    zoo = two_models(tmp_path)
    make(zoo)
    shutil.rmtree(tmp_path / "build")
    executor = Here()
    assert [each.state for each in make(zoo, executor=executor)] == ["restored"] * 3
    assert executor.ran == []
    write_spec(tmp_path, "b", hidden=32)
    make(zoo)
    write_spec(tmp_path, "b", hidden=24)  # and back
    assert [each.state for each in make(zoo, executor=executor)] == ["restored"]
    assert executor.ran == []


def test_a_changed_file_of_the_output_is_restored(tmp_path: Path) -> None:
    zoo = two_models(tmp_path)
    make(zoo)
    data = tmp_path / "build" / "b" / "portable-fp32" / "model.onnx.data"
    content = data.read_bytes()
    data.unlink()
    assert why(zoo, "b/portable-fp32") == "model.onnx.data is missing"
    assert [each.state for each in make(zoo)] == ["restored"]
    assert data.read_bytes() == content


def test_a_damaged_entry_of_the_cache_is_built_again(tmp_path: Path) -> None:
    zoo = two_models(tmp_path)
    make(zoo, "b")
    shutil.rmtree(tmp_path / "build")
    (data,) = cache_of(zoo).root.glob("artefacts/*/*/model.onnx.data")
    content = bytearray(data.read_bytes())
    content[7] ^= 1
    data.write_bytes(content)
    executor = Here()
    assert [each.state for each in make(zoo, "b", executor=executor)] == ["built"]
    assert executor.ran == ["b/portable-fp32"]


def test_a_failure_stops_no_other(tmp_path: Path) -> None:
    zoo = two_models(tmp_path)
    plan = plan_of(zoo)
    fails = next(
        step.inputs.key for step in plan.steps if step.artefact.name == "a/portable-fp16" and step.inputs
    )
    place = cache_of(zoo).entry(fails)
    place.mkdir(parents=True)
    (place / "not ours").write_text("mine")
    made = {each.step.artefact.name: each for each in make(zoo)}
    assert {name: each.state for name, each in made.items()} == {
        "a/portable-fp32": "built",
        "a/portable-fp16": "failed",
        "b/portable-fp32": "built",
    }
    assert "zoo did not write it" in made["a/portable-fp16"].error
    assert set(Lock.read(tmp_path / LOCK).artefacts) == {"a/portable-fp32", "b/portable-fp32"}


def test_files_of_the_user_stay(tmp_path: Path) -> None:
    zoo = two_models(tmp_path)
    make(zoo, "b")
    notes = tmp_path / "build" / "b" / "portable-fp32" / "notes.txt"
    notes.write_text("mine")
    write_spec(tmp_path, "b", hidden=32)
    make(zoo, "b")
    assert notes.read_text() == "mine"


def test_the_lock_records_all_inputs(tmp_path: Path) -> None:
    zoo = two_models(tmp_path)
    make(zoo, "a")
    lock = json.loads((tmp_path / LOCK).read_text())
    assert lock["weights"] == {"a": "random, seed 0"}
    assert set(lock["artefacts"]) == {"a/portable-fp32", "a/portable-fp16"}
    make(zoo)
    before = (tmp_path / LOCK).read_bytes()
    shutil.rmtree(tmp_path / "build")
    assert not plan_of(zoo).unlocked  # built elsewhere, as the lock says
    write_spec(tmp_path, "b", hidden=32)
    assert [step.artefact.name for step in plan_of(zoo).unlocked] == ["b/portable-fp32"]
    assert (tmp_path / LOCK).read_bytes() == before
    (tmp_path / LOCK).write_text("{")
    with pytest.raises(UserError, match=r"zoo.lock is not a JSON object\n.*Restore it from version control"):
        make_plan(zoo, [], cache_of(zoo))


def test_the_cache_removes_the_least_recently_used(tmp_path: Path) -> None:
    zoo = two_models(tmp_path)
    make(zoo)
    cache = cache_of(zoo)
    oldest, *others = cache.entries()
    os.utime(cache.entry(oldest.key), (1, 1))
    assert [each.key for each in cache.prune(sum(each.size for each in others))] == [oldest.key]
    assert {each.key for each in cache.entries()} == {each.key for each in others}
    assert not plan_of(zoo).stale  # output directories keep their files
    assert len(cache.prune(10**9, unused_since=10**12)) == 2


@pytest.mark.slow
def test_artefacts_are_the_same_bytes_wherever_they_are_made(tmp_path: Path) -> None:
    """In two directories, and with another number of threads."""
    digests = []
    threads = torch.get_num_threads()
    try:
        for name, count in (("x", 1), ("y", 2)):
            (tmp_path / name).mkdir()
            zoo = two_models(tmp_path / name)
            torch.set_num_threads(count)
            make(zoo)
            found = {
                path.relative_to(zoo.root): path for path in (zoo.root / "build").rglob("*") if path.is_file()
            }
            digests.append(
                {str(path): place.read_bytes() for path, place in found.items() if path.name != "build.json"}
            )
    finally:
        torch.set_num_threads(threads)
    assert digests[0] == digests[1]


def write_adapter(directory: Path, seed: int) -> None:
    """An adapter of PEFT for the first feed-forward of a small model."""
    generator = torch.Generator().manual_seed(seed)
    module = "base_model.model.encoder.blocks.0.feed_forward.up"
    shapes = {f"{module}.lora_A.weight": (2, 16), f"{module}.lora_B.weight": (24, 2)}
    directory.mkdir(exist_ok=True)
    (directory / "adapter_config.json").write_text('{"peft_type": "LORA", "r": 2, "lora_alpha": 4}')
    tensors = {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    save_file(tensors, directory / "adapter_model.safetensors")


def with_adapters(directory: Path, adapters: str, options: str = "") -> Zoo:
    write_spec(directory, "a")
    model = build(str(directory / "a.yaml"), weights="random")
    save_file({name: x.detach() for name, x in weight_tensors(model)}, directory / "a.safetensors")
    entry = (
        f"{{spec: a.yaml, weights: a.safetensors, adapters: {adapters}, options: {{verify: false{options}}}}}"
    )
    return write_zoo(directory, f"models:\n  a: {entry}\n")


def test_adapters_are_paths_beside_the_zoo_file(tmp_path: Path) -> None:
    write_adapter(tmp_path / "tuned", 0)
    zoo = with_adapters(tmp_path, "[first=tuned, second=tuned]")
    assert [result.state for result in make(zoo)] == ["built"]
    directory = tmp_path / "build" / "a" / "portable-fp32"
    assert {path.name for path in directory.glob("*.onnx_adapter")} == {
        "first.onnx_adapter",
        "second.onnx_adapter",
    }
    assert states(plan_of(zoo)) == {"a/portable-fp32": "current"}
    write_adapter(tmp_path / "tuned", 1)
    assert states(plan_of(zoo)) == {"a/portable-fp32": "build"}
    assert why(zoo, "a/portable-fp32").startswith("adapters first: files ")


@pytest.mark.parametrize(
    ("adapters", "options", "fault"),
    [
        ("[first=nowhere]", "", "models.a: adapters: must be existing directories.\n  value: first=nowhere"),
        ("[tuned]", "", "adapters must be NAME=DIR"),
        ("[x=tuned, x=other]", "", "adapters has two adapters called x"),
        ("[x=tuned, X=other]", "", "adapters has two adapters called X"),
        ("[x=tuned]", ", precision: bf16", "adapters cannot be used with precision bf16"),
    ],
)
def test_adapters_that_cannot_be_made(tmp_path: Path, adapters: str, options: str, fault: str) -> None:
    write_adapter(tmp_path / "tuned", 0)
    with pytest.raises(UserError, match=re.escape(fault)):
        plan_of(with_adapters(tmp_path, adapters, options))


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (
            "outputs: [hidden:99]",
            "a/portable-fp32-hidden-99: outputs must name layers of the encoder of a: 0 to",
        ),
        ("cache_length: 9", "cache_length"),
    ],
)
def test_options_that_do_not_fit_the_spec_are_found_in_the_plan(
    tmp_path: Path, options: str, fault: str
) -> None:
    write_spec(tmp_path, "a")
    with pytest.raises(UserError, match=re.escape(fault)):
        plan_of(write_zoo(tmp_path, f"models:\n  a: {{spec: a.yaml, options: {{{options}}}}}\n"))


@pytest.mark.parametrize(
    ("leaf", "change", "fault"),
    [
        ("A", lambda matrix: None, "feed_forward.up has one of the matrices A and B alone"),
        ("A", lambda matrix: matrix[:, 1:], "feed_forward.up.weight: a change for 24 x 15, and the base has 24 x 16"),
        ("A", lambda matrix: matrix[1:], "feed_forward.up have no product\n  value: 1 x 16 and 24 x 2"),
        ("B", lambda matrix: matrix.log(), "feed_forward.up.lora_B.weight has values that are NaN or infinite"),
    ],
)  # fmt: skip
def test_a_damaged_adapter_is_found_in_the_plan(
    tmp_path: Path, leaf: str, change: Callable[[torch.Tensor], torch.Tensor | None], fault: str
) -> None:
    write_adapter(tmp_path / "tuned", 0)
    file = tmp_path / "tuned" / "adapter_model.safetensors"
    tensors = load_file(file)
    name = next(name for name in tensors if f"lora_{leaf}" in name)
    changed = change(tensors.pop(name))
    save_file(tensors if changed is None else {**tensors, name: changed.contiguous()}, file)
    with pytest.raises(UserError) as caught:
        plan_of(with_adapters(tmp_path, "[x=tuned]"))
    assert str(caught.value).startswith(f"{tmp_path / 'zoo.yaml'}: models.a: adapters: ")
    assert fault in str(caught.value)


def test_a_damaged_file_beside_weights_is_found_in_the_plan(tmp_path: Path) -> None:
    write_spec(tmp_path, "a")
    model, weights = build(str(tmp_path / "a.yaml"), weights="random"), tmp_path / "weights"
    weights.mkdir()
    save_file({name: x.detach() for name, x in weight_tensors(model)}, weights / "model.safetensors")
    zoo = write_zoo(tmp_path, "models:\n  a: {spec: a.yaml, weights: weights, options: {verify: false}}\n")
    assert plan_of(zoo).steps[0].state == "build"
    (weights / "tokenizer.json").write_text('{"version": "1.0", "model": {')
    with pytest.raises(UserError) as caught:
        plan_of(zoo)
    assert str(caught.value) == (
        f"{tmp_path / 'zoo.yaml'}: models.a: weights: {weights / 'tokenizer.json'} is not a JSON object\n"
        "  Copy the file again from where it came, or remove it."
    )
