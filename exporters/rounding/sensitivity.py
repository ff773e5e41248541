"""The cost of rounding each group of matrices, estimated for all groups in the same passes.

A group changes the outputs of its layers by delta = x dW^T. To second order, the resulting KL divergence is half the
mean square of g . delta, where g is the gradient, at the outputs of the layers, of the log probability of tokens
sampled from the model itself (Fisher information). One backward pass thus gives one sample for every group; each row
of a batch is a separate sample. For models without scores, g is the gradient of a random projection of the normalised
outputs, and the estimate is 1 - cosine.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from exporters.quality.outputs import Outputs, judged_positions
from exporters.quality.tallies import Pairs, Scores, tally_for
from exporters.quality.text_tallies import Vectors
from exporters.rounding.bit_choice import Key
from exporters.verification.cases import Batch, Case
from exporters.verification.reference import full_pass
from specs.model.model import Model
from zoo import functional
from zoo.core.tensors import weight_tensors

LENGTH = 64
"""The number of tokens per row: shorter rows give more samples for the same work."""

ROWS = 24
"""The largest number of rows to measure."""

DRAWS = 4
"""The number of backward passes per batch."""


def sensitivities(
    spec: Model,
    model: Any,
    cases: Sequence[Case],
    changes: Mapping[Key, Mapping[str, Tensor]],
    progress: Callable[[int, int], None] = lambda done, count: None,
) -> dict[Key, float]:
    """The cost of each group: KL divergence in nats per position, or 1 - cosine.

    ``changes``: the change of each weight by rounding, by group; the key of a group is the names of its weights.
    """
    group_of = {name: key for key, weights in changes.items() for name in weights}
    added = {name: change for weights in changes.values() for name, change in weights.items()}
    named = {id(tensor): name for name, tensor in weight_tensors(model) if name in added}
    cases = _rows(cases, spec)
    squares, positions = dict.fromkeys(changes, 0.0), 0
    generator = torch.Generator().manual_seed(0)
    for done, case in enumerate(cases):
        progress(done, len(cases))
        with torch.enable_grad(), _Watch(named, added) as watch:
            outputs = full_pass(model, case)
        outs = [out for _, out, _ in watch.calls]
        for draw in range(DRAWS):
            objective, count = _objective(spec, case, outputs, generator)
            gradients = torch.autograd.grad(objective, outs, retain_graph=draw + 1 < DRAWS, allow_unused=True)
            rows = len(case.batch.inputs)
            sums = {key: torch.zeros(rows, dtype=torch.float64) for key in changes}
            for (name, _, delta), gradient in zip(watch.calls, gradients, strict=True):
                if gradient is not None:
                    _add(sums[group_of[name]], gradient, delta)
            for key, total in sums.items():
                squares[key] += float(total.square().sum())
            positions += count
    return {key: value / (2 * max(1, positions)) for key, value in squares.items()}


def _add(sums: Tensor, gradient: Tensor, delta: Tensor) -> None:
    """Add g . delta of each row; tensors without a row per input add their whole sum to the first row."""
    if len(gradient) == len(sums):
        sums += (gradient * delta).flatten(1).sum(1)
    else:
        sums[0] += (gradient * delta).sum()


class _Watch(TorchFunctionMode):
    """Records the outputs of layers, and their changes due to rounded weights."""

    def __init__(self, named: Mapping[int, str], added: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.calls: list[tuple[str, Tensor, Tensor]] = []
        self._named, self._added = named, added

    def __torch_function__(
        self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if function is functional.mixture_of_experts:
            with self:  # a mode is off inside its own calls
                return inspect.unwrap(function)(*args, **(kwargs or {}))
        result = function(*args, **(kwargs or {}))
        if function not in (F.linear, F.embedding, functional.expert_linear):
            return result
        x, weight, *rest = [*args, *(kwargs or {}).values()]
        if (name := self._named.get(id(weight))) is None:
            return result
        with torch.no_grad():
            change = self._added[name].float()
            if function is functional.expert_linear:
                delta = function(x.detach(), change, None, rest[-1])
            else:
                delta = F.linear(x.detach(), change) if function is F.linear else F.embedding(x, change)
        if not result.requires_grad:
            result.requires_grad_()
        self.calls.append((name, result, delta))
        return result


def _objective(spec: Model, case: Case, outputs: Outputs, generator: torch.Generator) -> tuple[Tensor, int]:
    """Return a sum whose gradient is a sample, and its number of positions or vectors."""
    tally = tally_for(spec)
    if isinstance(tally, Scores):
        scores = outputs["logits"]
        log_p = scores[judged_positions(case, scores)].log_softmax(-1)
        drawn = torch.multinomial(log_p.detach().exp(), 1, generator=generator)
        return log_p.gather(-1, drawn).sum(), len(log_p)
    if isinstance(tally, Vectors):
        vectors = tally.pooled(case, outputs)
    elif isinstance(tally, Pairs):
        vectors = torch.cat(tally.vectors(outputs))
    else:
        names = [name for name in outputs if not name.startswith(("present", "state", "encoder "))]
        vectors = torch.cat([outputs[name].float().flatten(1) for name in names], 1)
    unit = F.normalize(vectors, dim=-1)
    return (unit * torch.randn(unit.shape, generator=generator)).sum(), len(unit)


def _rows(cases: Sequence[Case], spec: Model) -> list[Case]:
    """Evenly spaced cases, with about :data:`ROWS` rows in total; a decoder's rows are cut into short ones."""
    length = LENGTH if spec.architecture == "decoder" else None
    cases = [
        replace(
            case,
            batch=_copied(case.batch, length),
            encoder=None if case.encoder is None else _copied(case.encoder, None),
        )
        for case in cases
    ]
    wanted = max(1, ROWS // max((len(case.batch.inputs) for case in cases), default=1))
    step = max(1.0, len(cases) / wanted)
    return [cases[int(index * step)] for index in range(min(wanted, len(cases)))]


def _copied(batch: Batch, length: int | None) -> Batch:
    """Copy a batch for differentiation, with rows cut to ``length`` if that divides them."""
    shape = (-1, length or batch.inputs.shape[1])
    cut = batch.inputs.dim() == 2 and batch.inputs.shape[1] % shape[1] == 0
    inputs, mask, types = (
        None if tensor is None else (tensor.reshape(shape) if cut else tensor).clone()
        for tensor in (batch.inputs, batch.mask, batch.types)
    )
    assert inputs is not None
    return replace(batch, inputs=inputs, mask=mask, types=types)
