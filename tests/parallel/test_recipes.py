"""The recipes train, and resume from their last checkpoint."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "examples" / "parallel"


def started(*command: str) -> subprocess.CompletedProcess[str]:
    """A recipe, run to its end."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(ROOT), *sys.path)),
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env=environment, cwd=ROOT
    )


def printed(*command: str) -> str:
    """What a recipe prints."""
    done = started(*command)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def losses(text: str) -> dict[int, float]:
    """The losses that a recipe printed, by step."""
    return {int(step): float(loss) for step, loss in re.findall(r"step (\d+): ([\d.]+) nats", text)}


def launcher(processes: int) -> tuple[str, ...]:
    """The arguments of Python that start a program on several processes."""
    return ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes))


def torchrun(processes: int, *options: str) -> dict[int, float]:
    """The losses of ``train_torchrun.py``."""
    recipe = (str(RECIPES / "train_torchrun.py"), "--data", "README.md", "--rows", "4", *options)
    return losses(printed(*launcher(processes), *recipe))


@pytest.mark.parametrize("recipe", sorted(RECIPES.glob("*.py")), ids=lambda path: path.stem)
def test_a_recipe_is_short(recipe: Path) -> None:
    assert len(recipe.read_text().splitlines()) < 150


@pytest.mark.slow
def test_training_goes_on_with_other_processes(tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "run"), "--save-every", "10")
    first = torchrun(4, "--tp", "2", "--steps", "10", *out)
    assert [*first] == [10]
    second = torchrun(2, "--tp", "1", "--steps", "30", *out)
    assert [*second] == [20, 30]
    assert second[30] < first[10] < 5.6  # that of bytes drawn alike
    assert torchrun(2, "--steps", "30", *out) == {}


@pytest.mark.slow
def test_training_under_accelerate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    recipe = (str(RECIPES / "train_accelerate.py"), "--data", "README.md", "--out", str(tmp_path))
    first, second = (printed(*launcher(2), *recipe, "--steps", "10") for _ in range(2))
    assert losses(second)[10] < losses(first)[10]
    note = "Without GPUs, Accelerate has no FSDP: each of 2 processes trains a copy of the model."
    assert first.count(note) == second.count(note) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--tp", "2", "--spec", "odd.yaml"), "heads (3)\n  value: tp=2\n  Use tp=1.\n"),
        (("--spec", "other.yaml"), " is a checkpoint of another spec\n"),
    ],
)
def test_what_does_not_fit_is_refused_without_a_traceback(
    options: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "odd.yaml").write_text(
        "extends: tiny-gpt\nd_model: 48\ndecoder: {block: {attention: {heads: 3}}}\n"
    )
    (tmp_path / "other.yaml").write_text("extends: tiny-gpt\nposition: {kind: rope}\n")
    out = ("--out", str(tmp_path / "run"), "--steps", "1")
    assert [*torchrun(2, *out)] == [1]
    own = [str(tmp_path / each) if each.endswith(".yaml") else each for each in options]
    recipe = (str(RECIPES / "train_torchrun.py"), "--data", "README.md", *out, *own)
    failed = started(*launcher(2), *recipe)
    assert failed.returncode == 1
    assert message in failed.stderr
    assert "parallelize" not in failed.stderr  # of a traceback


DIES = """
import os, runpy, signal
from pathlib import Path
import torch.distributed as dist
import zoo

saved, killed = zoo.save_checkpoint, Path(__file__).with_name("killed")

def save_and_die(model, directory, optimizer):
    saved(model, directory, optimizer)
    if dist.get_rank() == 1 and not killed.exists():
        killed.touch()
        os.kill(os.getpid(), signal.SIGKILL)

zoo.save_checkpoint = save_and_die
runpy.run_path({recipe!r}, run_name="__main__")
"""


@pytest.mark.slow
def test_training_under_ray_survives_the_death_of_a_worker(tmp_path: Path) -> None:
    pytest.importorskip("ray.train", exc_type=ImportError, reason="ray[train] is not installed")
    shutil.copy(RECIPES / "train_ray.py", tmp_path)
    (tmp_path / "train_torchrun.py").write_text(DIES.format(recipe=str(RECIPES / "train_torchrun.py")))
    options = (
        "--data",
        str(ROOT / "README.md"),
        "--out",
        str(tmp_path / "run"),
        "--rows",
        "4",
        "--save-every",
        "10",
    )
    found = printed(str(tmp_path / "train_ray.py"), "--workers", "2", "--", *options, "--steps", "20")
    assert (tmp_path / "killed").exists()
    assert [*losses(found)] == [10, 20]
    assert (
        losses(found)[20]
        == torchrun(2, "--steps", "20", "--save-every", "10", "--out", str(tmp_path / "plain"))[20]
    )
