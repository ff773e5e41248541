"""The same training under Hugging Face Accelerate: it wraps the blocks that the plan names with FSDP2.

    accelerate launch --num_processes 2 examples/parallel/train_accelerate.py --data README.md --steps 40

Started again, it resumes from its saved state.  Accelerate has FSDP for GPUs alone, and its launcher starts one process without
them.  On CPUs, processes that each train a copy of the model start with

    ACCELERATE_USE_CPU=true torchrun --nproc-per-node 2 examples/parallel/train_accelerate.py --data README.md --steps 40
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
import torch.nn.functional as F
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from torch.utils.data import DataLoader, TensorDataset

import zoo

BYTES = 256


def parsed() -> argparse.Namespace:
    """The options."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--spec", default="tiny-gpt", help="preset or YAML file of a decoder")
    options.add_argument("--data", type=Path, required=True, help="file whose bytes are learned")
    options.add_argument("--out", type=Path, default=Path("build/accelerate"), help="directory of the state")
    options.add_argument("--rows", type=int, default=8, help="passages per step and process")
    options.add_argument("--length", type=int, default=64, help="tokens of a passage")
    options.add_argument("--steps", type=int, default=100, help="steps of this run")
    options.add_argument("--rate", type=float, default=3e-3, help="learning rate")
    return options.parse_args()


def passages(path: Path, length: int) -> TensorDataset:
    """Every passage of a file once: length + 1 bytes each."""
    data = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8).long()
    return TensorDataset(data.unfold(0, length + 1, length))


def main() -> None:
    """Train, and save."""
    options = parsed()
    spec = zoo.load(options.spec, [f"vocab_size={BYTES}", f"context_length={options.length}"])
    wrapped = list(zoo.parallel_plan(spec).wrapped)
    plugin = FullyShardedDataParallelPlugin(
        fsdp_version=2, auto_wrap_policy="transformer_based_wrap", transformer_cls_names_to_wrap=wrapped
    )
    accelerator = Accelerator(mixed_precision="bf16", fsdp_plugin=plugin)
    if not accelerator.is_fsdp2:
        count = accelerator.num_processes
        accelerator.print(
            f"Without GPUs, Accelerate has no FSDP: each of {count} processes trains a copy of the model."
        )

    model = zoo.build(spec, weights="random").train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate, betas=(0.9, 0.95), weight_decay=0.1)
    loader = DataLoader(passages(options.data, options.length), batch_size=options.rows, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    if (options.out / "state").is_dir():
        accelerator.load_state(options.out / "state")

    step = 0
    while step < options.steps:
        for (rows,) in loader:
            if step == options.steps:
                break
            logits = model(rows[:, :-1]).logits
            loss = F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            if step % 10 == 0:
                average = accelerator.reduce(loss.detach(), "mean")
                accelerator.print(f"step {step}: {average.item():.4f} nats per byte")
    accelerator.save_state(options.out / "state")
    accelerator.end_training()


if __name__ == "__main__":
    main()
