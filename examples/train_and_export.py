"""Train a small variant to reverse a row of symbols, then export it with the weights that it holds.

python examples/train_and_export.py build/reverse
zoo run build/reverse --ids 3,1,4,1,0 --max-new-tokens 4
"""

import sys

import torch
import torch.nn.functional as F

import zoo

LENGTH, SYMBOLS, SEPARATOR = 4, 8, 0


def batch(size: int, generator: torch.Generator) -> torch.Tensor:
    """Rows of symbols, a separator, and the symbols backwards: size x (2 LENGTH + 1)."""
    symbols = torch.randint(1, SYMBOLS + 1, (size, LENGTH), generator=generator)
    return torch.cat((symbols, torch.full((size, 1), SEPARATOR), symbols.flip(1)), 1)


def train(model: torch.nn.Module, steps: int) -> float:
    """Train with AdamW; returns the share of right answers on new rows."""
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model.train()
    for _ in range(steps):
        ids = batch(64, generator)
        logits = model(ids[:, :-1]).logits[:, LENGTH:]  # after the separator
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, LENGTH + 1 :].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    ids = batch(256, generator)
    with torch.no_grad():
        answers = model(ids[:, :-1]).logits[:, LENGTH:].argmax(-1)
    return (answers == ids[:, LENGTH + 1 :]).float().mean().item()


def main(directory: str, steps: int = 150) -> None:
    changes = [f"vocab_size={SYMBOLS + 1}", "d_model=48", "decoder.layers=2", "position.kind=rope"]
    spec = zoo.load("tiny-gpt", changes)
    model = zoo.build(spec, weights="random", seed=1)
    print(f"{zoo.parameters(spec).total_parameters:,} parameters, {train(model, steps):.1%} of answers right")
    written = zoo.export(model, directory, logits="last")
    print(f"{directory}: largest difference {written.verification.max_abs:.1e} from PyTorch")


if __name__ == "__main__":
    main(*sys.argv[1:2])
