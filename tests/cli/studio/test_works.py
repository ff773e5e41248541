"""Meshes, this machine, training and checkpoints: what the commands report, mesh, compare and convert compute."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.studio.training_work import LARGEST, _finite
from tests.cli.program import as_json
from tests.cli.studio.conftest import Page, text_of
from tests.thinned import one_in


def events(page: Page, name: str, **data: Any) -> list[dict[str, Any]]:
    response = page.post(name, **data)
    assert response.status_code == 200, response.text
    return [json.loads(line) for line in response.text.splitlines()]


def small_gpt2() -> str:
    """The text of a GPT-2 of a few hundred kilobytes."""
    text = text_of("gpt2")
    for old, new in (("d_model: 768", "d_model: 64"), ("layers: 12", "layers: 2"), ("vocab_size: 50257", "vocab_size: 300"),
                     ("hidden: 3072", "hidden: 128"), ("heads: 12", "heads: 4")):  # fmt: skip
        assert old in text
        text = text.replace(old, new)
    return text


@one_in(3)
@pytest.mark.parametrize(("name", "count"), [("gpt2", 4), ("tiny-gpt", 6), ("mixtral-8x7b", 16)])
def test_every_split_of_a_mesh_is_that_of_the_report(page: Page, name: str, count: int) -> None:
    answer = page.post("mesh", text=text_of(name), device="a100", devices=count, batch=2, precision="bf16")
    assert answer.status_code == 200, answer.text
    data = answer.json()
    assert data["splits"]
    for split in data["splits"]:
        mesh = ",".join(f"{dim}={degree}" for dim, degree in split["mesh"].items())
        told = as_json(
            "report", name, "--mesh", mesh, "--device", "a100", "--batch", "2", "--precision", "bf16"
        )
        assert {**split, "name": told["name"]} == told
        assert split["devices"] == count
    ranks = [
        (not split["fits"], not split["fits_serving"], split["step_seconds"]) for split in data["splits"]
    ]
    assert ranks == sorted(ranks)


def test_the_smallest_mesh_of_each_device_is_that_of_the_report(page: Page) -> None:
    data = page.post("mesh", text=text_of("llama-3-8b"), precision="bf16").json()
    for kind in data["kinds"]:
        for work in ("serve", "train"):
            options = ("--fit", work, "--device", kind["name"], "--precision", "bf16")
            told = as_json("report", "llama-3-8b", *options)
            assert (kind[work]["devices"], kind[work]["mesh"]) == (told["devices"], told["mesh"])


def test_a_mesh_counts_rounded_weights_in_the_precision_that_computes(page: Page) -> None:
    data = page.post("mesh", text=text_of("tiny-gpt"), precision="int4", length=10**6, devices=7).json()
    assert data["precision"] == "fp16"
    assert data["length"] == 128  # cut to the context
    assert [split["mesh"] for split in data["splits"]] == [{"dp": 7, "tp": 1, "pp": 1}]


def test_a_mesh_refuses_what_the_page_never_asks(page: Page) -> None:
    for wrong in (
        {"device": "this"}, {"device": "../x.yaml"}, {"device": "/etc/passwd"}, {"devices": 0}, {"devices": 5000},
        {"devices": 2.5}, {"precision": "fp7"}, {"batch": 0}, {"length": 0},
    ):  # fmt: skip
        assert page.post("mesh", text=text_of("tiny-gpt"), **wrong).status_code == 400, wrong
    assert page.post("mesh", text="name: [").status_code == 422


def test_this_machine_is_a_device_once_it_is_measured(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zoo.reports.devices.READ", 4_000_000)
    before = page.answer(text_of("tiny-gpt"), base="tiny-gpt")["devices"]
    assert "this" not in [device["name"] for device in before["roofline"]]
    measured = page.post("measure").json()
    assert measured["name"] == "this"
    assert set(measured["flops"]) == {"fp32", "fp16", "bf16"}
    parts = page.answer(text_of("tiny-gpt"), base="tiny-gpt")
    this = parts["devices"]["roofline"][-1]
    assert (this["name"], this["memory"], this["bandwidth"]) == (
        "this",
        measured["memory"],
        measured["bandwidth"],
    )
    assert this["count"] == 1
    assert all(row["devices"][-1]["name"] == "this" for row in parts["devices"]["fits"])
    whole = page.answer(text_of("gpt3-175b"), base="gpt3-175b", precision="fp32")["devices"]["fits"]
    row = next(row for row in whole if row["precision"] == "fp32")["devices"][-1]
    assert (row["count"], row["batch"]) == (1, 0)  # one machine, without room


@pytest.mark.slow
def test_a_spec_and_its_base_are_trained_as_compare_trains_them(page: Page, folder: Path) -> None:
    text = text_of("tiny-gpt").replace("kind: learned", "kind: none")
    assert text != text_of("tiny-gpt")
    told = events(page, "training", text=text, base="tiny-gpt", task="copy", steps=12, layers=1, width=32)
    assert told[0]["event"] == "models"
    assert told[-1]["event"] == "done", told[-1]
    points = [point for event in told if event["event"] == "steps" for point in event["points"]]
    assert [step for label, step, _ in points if label == "now"] == [*range(1, 13)]
    theirs = as_json(
        "compare", "tiny-gpt", "--with", "position.kind=none", "--task", "copy", "--steps", "12",
        "--num-layers", "1", "--width", "32",
    )  # fmt: skip
    for mine, other in zip(told[-1]["results"], theirs["results"], strict=True):
        assert {key: mine[key] for key in ("parameters", "loss", "accuracy")} == {
            key: other[key] for key in ("parameters", "loss", "accuracy")
        }
    again = events(page, "training", text=text, base="tiny-gpt", task="copy", steps=12, layers=1, width=32)
    assert all(result["kept"] for result in again[-1]["results"])
    assert (folder / "build/compare").is_dir()


@pytest.mark.slow
def test_a_large_model_is_not_trained(page: Page) -> None:
    told = events(page, "training", text=text_of("gpt2"), base="gpt2", task="copy", steps=1)
    assert told[-1]["event"] == "failed"
    assert f"at most {LARGEST:,}" in told[-1]["message"]
    assert "Layers and Width" in told[-1]["message"]


def test_a_training_is_of_synthetic_tasks_and_bounded(page: Page) -> None:
    text = text_of("tiny-gpt")
    for wrong in (
        {"task": "next-byte"}, {"task": "../x"}, {"steps": 5001}, {"steps": 0}, {"layers": 0}, {"width": 1e9},
        {"base": "/etc/passwd"}, {"base": "../x.yaml"},
    ):  # fmt: skip
        assert page.post("training", text=text, **wrong).status_code == 400, wrong


@pytest.mark.slow
def test_a_checkpoint_is_written_once_and_replaced_when_asked(page: Page, folder: Path) -> None:
    from zoo.configs.named_model import named_model

    text, place = small_gpt2(), "mine/tiny-checkpoint"
    done = events(page, "checkpoint", text=text, directory=place, dtype="fp16")[-1]
    assert done["event"] == "done", done
    assert done["loader"] == "GPT2LMHeadModel"
    assert {name for name, *_ in done["files"]} >= {"config.json", "model.safetensors"}
    assert named_model(folder / place).spec.d_model == 64
    before = (folder / place / "conversion.json").stat().st_mtime_ns
    exists = events(page, "checkpoint", text=text, directory=place)
    assert exists == [{"event": "exists", "directory": place}]
    assert (folder / place / "conversion.json").stat().st_mtime_ns == before
    replaced = events(page, "checkpoint", text=text, directory=place, replace=True, dtype="fp32")[-1]
    assert replaced["event"] == "done"


@pytest.mark.parametrize("replace", [False, True])
def test_a_checkpoint_leads_nowhere_else(page: Page, folder: Path, tmp_path: Path, replace: bool) -> None:
    (folder / "way-out").unlink(missing_ok=True)
    (folder / "way-out").symlink_to(tmp_path)
    for place in (
        "way-out",
        "way-out/x",
        "../x",
        "/tmp/x",
        "a/../../x",
        ".",
        "",
        ".hidden",
        "x\0",
        "a" * 300,
        "<b>",
    ):
        told = page.post("checkpoint", text=text_of("tiny-gpt"), directory=place, replace=replace)
        assert told.status_code == 422, place
        assert "The studio writes directories in" in told.json()["error"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_spec_of_no_family_is_written_with_its_own_code(page: Page, folder: Path) -> None:
    refused = events(page, "checkpoint", text=text_of("tiny-gpt"), directory="coded")[-1]
    assert refused["event"] == "failed"
    assert "fits no class of any known family" in refused["message"]
    assert "choose trust_remote_code" in refused["message"]
    assert not (folder / "coded").exists()
    done = events(page, "checkpoint", text=text_of("tiny-gpt"), directory="coded", code=True)[-1]
    assert done["event"] == "done", done
    assert list((folder / "coded").glob("modeling_*.py"))


@pytest.mark.slow
def test_a_checkpoint_replaces_nothing_of_the_user(page: Page, folder: Path) -> None:
    (folder / "photos").mkdir()
    (folder / "photos/one.png").write_bytes(b"1")
    told = events(page, "checkpoint", text=text_of("tiny-gpt"), directory="photos", replace=True)
    assert "holds files and no valid conversion.json" in told[-1]["message"]
    assert [path.name for path in (folder / "photos").iterdir()] == ["one.png"]


@pytest.mark.slow
def test_a_checkpoint_that_was_opened_is_exported_with_its_weights(
    page: Page, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert events(page, "checkpoint", text=small_gpt2(), directory="held")[-1]["event"] == "done"
    opened = page.post("open", reference="held").json()
    assert opened["weights"] == "held"
    done = events(page, "export", text=opened["text"], weights="held")[-1]
    assert done["event"] == "done", done
    assert done["verification"]["passed"]
    assert json.loads((folder / done["directory"] / "export.json").read_text())["weights"] != "random"
    wider = opened["text"].replace("d_model: 64", "d_model: 128")
    refused = events(page, "export", text=wider, weights="held")[-1]
    assert refused["event"] == "failed"
    assert "held" in refused["message"]


def test_a_loss_that_is_not_finite_is_none() -> None:
    assert [_finite(loss) for loss in (1.5, float("nan"), float("inf"))] == [1.5, None, None]
