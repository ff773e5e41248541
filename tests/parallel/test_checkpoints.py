"""Shards drawn and read, distributed checkpoints, stages of pipelines, and processes that end."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.multiprocessing.spawn import ProcessExitedException

import zoo
from tests.parallel import checkpoints
from tests.parallel.models import MODELS
from tests.parallel.processes import on_processes
from zoo.checkpoints.open_weights import open_weights
from zoo.parallel.stage_limits import check_stages


@pytest.mark.parametrize(("begin", "end"), [(0, 10), (7, 4_200_000), (5_000_000, 8_388_608)])
def test_a_part_of_the_random_weights_is_that_of_the_whole(begin: int, end: int) -> None:
    spec = MODELS["decoder"].model_copy(update={"vocab_size": 2**19})
    model: Any = zoo.build(spec)
    source = open_weights("random", model, spec)
    table = source.whole("embedding.token.weight", model.embedding.token.weight).flatten()
    found = torch.cat([*source.part("embedding.token.weight", begin, end)])
    assert torch.equal(found, table[begin:end])


@pytest.mark.slow
@pytest.mark.parametrize("dims", [("tp",), ("dp", "tp"), ("dp",)])
def test_each_process_draws_and_reads_its_own_shards(dims: tuple[str, ...], tmp_path: Path) -> None:
    from safetensors.torch import save_file

    names = ("tied", "grouped-query", "mixture", "hybrid", "encoder-decoder")
    for name in names:
        (tmp_path / name).mkdir()
        save_file(
            zoo.build(MODELS[name], "random", seed=3).state_dict(), tmp_path / name / "model.safetensors"
        )
    on_processes(4, checkpoints.drawn_and_read, names, dims, str(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tied", "mixture", "hybrid"])
def test_saved_by_four_processes_loaded_by_two_and_exported(name: str, tmp_path: Path) -> None:
    directory = tmp_path / "saved"
    on_processes(4, checkpoints.save, name, ("dp", "tp"), str(directory))
    on_processes(2, checkpoints.resume, name, ("dp",), str(directory))
    on_processes(2, checkpoints.resume, name, ("tp",), str(directory))
    if name == "mixture":
        on_processes(2, checkpoints.load_another, str(directory))
    model = zoo.build(MODELS[name], str(directory))
    saved = torch.load(f"{directory}.pt")["saved"]
    for path, parameter in model.named_parameters():
        assert torch.equal(parameter, saved[path])
    zoo.export(MODELS[name], tmp_path / "exported", weights=directory)
    assert zoo.verify(tmp_path / "exported").passed


@pytest.mark.slow
def test_a_distributed_checkpoint_is_converted(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    directory = tmp_path / "saved"
    on_processes(2, checkpoints.save, "grouped-query", ("tp",), str(directory))
    zoo.convert(MODELS["grouped-query"], directory, tmp_path / "converted")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "converted").eval()
    ids = torch.arange(8)[None]
    ours = zoo.build(MODELS["grouped-query"], str(directory))
    torch.testing.assert_close(theirs(ids).logits, ours(ids).logits, atol=1e-5, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("count", "dims"), [(2, ("pp",)), (4, ("pp", "tp")), (4, ("pp", "dp"))])
def test_stages_of_a_pipeline_compute_what_one_process_does(count: int, dims: tuple[str, ...]) -> None:
    on_processes(
        count, checkpoints.pipeline, ("decoder", "grouped-query", "mixture"), dims, torch.float32, 1e-5
    )
    on_processes(count, checkpoints.pipeline, ("hybrid",), dims, torch.float64, 1e-10)  # amplifies rounding


@pytest.mark.slow
@pytest.mark.parametrize(("count", "dims"), [(2, ("pp",)), (4, ("pp", "tp")), (4, ("pp", "dp"))])
def test_stages_of_a_pipeline_generate_what_one_process_does(count: int, dims: tuple[str, ...]) -> None:
    on_processes(count, checkpoints.generated, ("decoder", "grouped-query", "mixture", "hybrid"), dims)


@pytest.mark.slow
def test_a_killed_process_ends_the_others(tmp_path: Path) -> None:
    begun = time.monotonic()
    with pytest.raises((ProcessExitedException, Exception), match=r"SIGKILL|closed by peer|reset by peer"):
        on_processes(2, checkpoints.killed, str(tmp_path / "marker"))
    assert (tmp_path / "marker").exists()
    assert time.monotonic() - begun < 60


@pytest.mark.parametrize(
    ("name", "degree", "message"),
    [
        (
            "decoder",
            4,
            "decoder.layers: a pipeline needs a layer for each stage, and there are 3\n  value: pp=4\n  Use pp=1 or 3.",
        ),
        ("encoder-decoder", 2, "architecture: a pipeline needs an encoder or a decoder of tokens, not encoder-decoder"),
        ("tied", 2, "head and embedding share embedding.token.weight, and stages of a pipeline share no weights"),
        ("shared-layers", 3, "decoder.layers share a block"),
    ],
)  # fmt: skip
def test_pipelines_that_do_not_fit_are_refused(name: str, degree: int, message: str) -> None:
    with pytest.raises(zoo.UserError, match=re.escape(message)):
        check_stages(zoo.build(MODELS[name]), degree)


def test_an_index_that_names_other_classes_is_refused(tmp_path: Path) -> None:
    import pickle

    (tmp_path / ".metadata").write_bytes(pickle.dumps(Path.touch))
    with pytest.raises(zoo.WeightError, match=r"which it has no use for"):
        zoo.build(MODELS["decoder"], str(tmp_path))
    (tmp_path / ".metadata").write_bytes(b"damaged")
    with pytest.raises(zoo.WeightError, match="is damaged"):
        zoo.build(MODELS["decoder"], str(tmp_path))


def test_a_directory_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(zoo.UserError, match=re.escape("(no .metadata)")):
        zoo.load_checkpoint(zoo.build(MODELS["decoder"], "random"), tmp_path)
