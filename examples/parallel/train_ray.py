"""The recipe of ``train_torchrun.py`` on the workers of a Ray cluster: Ray Train starts them, and starts them again after a
failure, from the last checkpoint.

    python examples/parallel/train_ray.py --workers 2 -- --data $PWD/README.md --out $PWD/build/ray --steps 40

It needs ``ray[train]``.  What follows ``--`` are the options of ``train_torchrun.py``; paths must be seen by every worker.
"""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path
from typing import Any

import torch
from ray.train import FailureConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer

RECIPE = Path(__file__).with_name("train_torchrun.py")


def work(config: dict[str, Any]) -> None:
    """Run the recipe on a worker, in the process group that Ray Train has made."""
    sys.argv = [str(RECIPE), *config["options"]]
    runpy.run_path(str(RECIPE), run_name="__main__")


def main() -> None:
    """Train on the workers."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--workers", type=int, default=2, help="number of processes")
    options.add_argument("--failures", type=int, default=1, help="failures after which training goes on")
    options.add_argument("options", nargs="*", help="options of train_torchrun.py, after --")
    arguments = options.parse_args()
    gpu = torch.cuda.is_available()
    TorchTrainer(
        work,
        train_loop_config={"options": arguments.options},
        torch_config=TorchConfig(backend="nccl" if gpu else "gloo"),
        scaling_config=ScalingConfig(num_workers=arguments.workers, use_gpu=gpu),
        run_config=RunConfig(failure_config=FailureConfig(max_failures=arguments.failures)),
    ).fit()


if __name__ == "__main__":
    main()
