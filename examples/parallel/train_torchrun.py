"""Train a decoder on the bytes of a file, on several processes; started again, it goes on where it was saved.

    torchrun --nproc-per-node 4 examples/parallel/train_torchrun.py --data README.md --tp 2 --steps 40

Processes that share a token (tp) hold parts of each matrix; the others (dp) read other parts of the batch, and hold shards.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy
from torch.nn.utils import clip_grad_norm_

import zoo

BYTES = 256


def batch_of(data: Tensor, rows: int, length: int, seed: int) -> Tensor:
    """Random passages: rows x (length + 1), the same for the same seed."""
    drawn = torch.Generator().manual_seed(seed)
    starts = torch.randint(len(data) - length - 1, (rows,), generator=drawn)
    return torch.stack([data[start : start + length + 1] for start in starts.tolist()])


def learning_rate(step: int, steps: int, peak: float) -> float:
    """A short rise, then a fall to a tenth."""
    return peak * min(1.0, (step + 1) / 10) * (1.0 - 0.9 * step / steps)


def latest(directory: Path) -> Path | None:
    """The last complete checkpoint: its spec is written last."""
    return max((spec.parent for spec in directory.glob("step-*/spec.json")), default=None)


def parsed() -> argparse.Namespace:
    """The options."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--spec", default="tiny-gpt", help="preset or YAML file of a decoder")
    options.add_argument("--data", type=Path, required=True, help="file whose bytes are learned")
    options.add_argument("--out", type=Path, default=Path("build/parallel"), help="directory of checkpoints")
    options.add_argument("--tp", type=int, default=1, help="degree of tensor parallelism")
    options.add_argument("--rows", type=int, default=8, help="passages per step and data-parallel rank")
    options.add_argument("--length", type=int, default=64, help="tokens of a passage")
    options.add_argument("--steps", type=int, default=100, help="steps in all, earlier runs included")
    options.add_argument("--save-every", type=int, default=20, help="steps between checkpoints")
    options.add_argument("--rate", type=float, default=3e-3, help="peak learning rate")
    options.add_argument("--seed", type=int, default=0)
    return options.parse_args()


def main() -> None:
    """Train, and save."""
    options = parsed()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if not dist.is_initialized():  # as it is under Ray Train
        dist.init_process_group("nccl" if device == "cuda" else "gloo")
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    shape = dist.get_world_size() // options.tp, options.tp
    mesh = init_device_mesh(device, shape, mesh_dim_names=("dp", "tp"))

    spec = zoo.load(options.spec, [f"vocab_size={BYTES}", f"context_length={options.length}"])
    half = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    model = zoo.parallelize(
        zoo.build(spec),  # on the meta device: no process ever holds the whole
        mesh,
        weights="random",
        seed=options.seed,
        sequence=options.tp > 1,
        recompute=True,
        mp_policy=half,
    )
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate, betas=(0.9, 0.95), weight_decay=0.1)

    first, saved = 0, latest(options.out)
    if saved is not None:
        zoo.load_checkpoint(model, saved, optimizer)
        first = int(saved.name.removeprefix("step-"))
    data = torch.frombuffer(bytearray(options.data.read_bytes()), dtype=torch.uint8).long()
    replica = mesh["dp"].get_local_rank()

    for step in range(first, options.steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, options.steps, options.rate)
        seed = (options.seed * options.steps + step) * shape[0] + replica
        passages = batch_of(data, options.rows, options.length, seed).to(device)
        logits = model(passages[:, :-1]).logits
        loss = F.cross_entropy(logits.flatten(0, 1), passages[:, 1:].flatten())
        loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        done = step + 1
        if done % 10 == 0 or done == options.steps:
            average = loss.detach().clone()
            dist.all_reduce(average)
            if dist.get_rank() == 0:
                print(f"step {done}: {average.item() / dist.get_world_size():.4f} nats per byte", flush=True)
        if done % options.save_every == 0 or done == options.steps:
            zoo.save_checkpoint(model, options.out / f"step-{done:06}", optimizer)
    dist.destroy_process_group()


if __name__ == "__main__":
    try:
        main()
    except zoo.UserError as error:  # such as a degree that does not fit, or a checkpoint of another spec
        sys.exit(str(error) if os.environ.get("RANK") == "0" else 1)
