"""The recipes train, and go on where they were saved."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "examples" / "parallel"


def run(*command: str) -> dict[int, float]:
    """The losses that a recipe prints, by step."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env=environment, timeout=600, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return {int(step): float(loss) for step, loss in re.findall(r"step (\d+): ([\d.]+) nats", done.stdout)}


def torchrun(processes: int, *options: str) -> dict[int, float]:
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes))
    return run(*launcher, str(RECIPES / "train_torchrun.py"), "--data", "README.md", "--rows", "4", *options)


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
def test_training_under_accelerate(tmp_path: Path) -> None:
    launcher = ("-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2")
    recipe = (str(RECIPES / "train_accelerate.py"), "--data", "README.md", "--out", str(tmp_path))
    first, second = (run(*launcher, *recipe, "--steps", "10") for _ in range(2))
    assert second[10] < first[10]


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("pandas") is None, reason="ray[train] is not installed")
def test_training_under_ray(tmp_path: Path) -> None:
    own = ("--data", str(ROOT / "README.md"), "--out", str(tmp_path), "--steps", "10", "--save-every", "10")
    run(str(RECIPES / "train_ray.py"), "--workers", "2", "--", *own)
    assert (tmp_path / "step-000010" / "spec.json").is_file()
