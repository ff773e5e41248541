"""Training steps in PyTorch: the loss of the next tokens, and its gradients."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F

import zoo
from benchmarks.every_expert import EveryExpert
from benchmarks.side_by_side import THREADS
from specs.language.load import load

BATCH, LENGTH = 8, 512
ROUNDS = 3


def step_seconds(preset: str, mixture: Sequence[str], dense: Sequence[str]) -> list[float]:
    """The times of a mixture, of a dense model, and of the mixture with every expert; models alternate."""
    torch.set_num_threads(THREADS)
    steps = [_step(preset, mixture), _step(preset, dense), _step(preset, mixture, every_expert=True)]
    taken: list[list[float]] = [[] for _ in steps]
    for repeat in range(ROUNDS + 1):
        for step, seconds in zip(steps, taken, strict=True):
            begun = time.perf_counter()
            step()
            if repeat:  # the first warms up
                seconds.append(time.perf_counter() - begun)
    return [statistics.median(seconds) for seconds in taken]


def _step(preset: str, changes: Sequence[str], *, every_expert: bool = False) -> Callable[[], None]:
    spec = load(preset, [*changes])
    model = zoo.build(spec, weights="random").train()
    if every_expert:
        for block in model.decoder.blocks:
            block.feed_forward.experts = EveryExpert(block.feed_forward.experts)
    ids = torch.randint(spec.vocab_size or 1, (BATCH, LENGTH + 1), generator=torch.Generator().manual_seed(0))
    mask = torch.ones(BATCH, LENGTH, dtype=torch.int64)

    def step() -> None:
        model.zero_grad()
        logits = model(ids[:, :-1], mask)["logits"]
        F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()).backward()

    return step
