"""The rounding error of float32, which bounds the differences of models that amplify it.

Where a model amplifies rounding, its error at the most sensitive output is one random number, and two correct computations
differ by any multiple of a single draw of it: the ratio of two draws has no largest value. The bound is therefore the largest of
several draws: PyTorch's own error, and that of the same model computed a little differently.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from exporters.reference import Expected, ExpectedCase, Reference, real_places
from zoo.components.router import Router
from zoo.tensors import weight_bytes

EXACT_BYTES = 1_000_000_000
"""The largest model that is run in float64 to judge a difference, in parameters."""

DRAWS = 8
"""The number of draws of the rounding error."""

MOVED = 8
"""One weight in this many moves to a neighbouring float32 between two draws: too little to matter itself, but every sum that
it takes part in rounds anew."""

SIGMOID_ERROR = 2.0**-23
"""The error of a sigmoid in ONNX Runtime: about a unit in the last place of 1, whatever the result (measured on CPU: up to 1.6e-7),
where PyTorch's is one of the result. SiLU multiplies it by inputs far below 0, whose own results are almost 0."""


def roundings_of(reference: Reference, expected: Expected) -> Callable[[], Mapping[str, float]]:
    """The largest distance between float32 and float64 in all draws, by output; empty for models too large for float64."""

    @functools.cache
    def roundings() -> Mapping[str, float]:
        model = reference.model
        if weight_bytes(model) > EXACT_BYTES:
            return {}
        wide = copy.deepcopy(model).double()
        exact = [each.run(wide, each.case) for each in expected.cases]
        del wide
        found = dict[str, float]()
        for rounded in _draws(model, expected.cases):
            for each, right, outputs in zip(expected.cases, exact, rounded, strict=True):
                for output, value in right.items():
                    real = real_places(each.case, output, expected.per_token, torch.float32)
                    difference = float((value[real] - outputs[output][real]).abs().max())
                    found[output] = max(difference, found.get(output, 0.0))
        return found

    return roundings


def _draws(model: nn.Module, cases: Sequence[ExpectedCase]) -> Iterator[list[Mapping[str, Tensor]]]:
    """The outputs of all cases in each draw: those of the model, and then of a copy whose weights move a little further each
    time, with sigmoids as in ONNX Runtime. Outputs for which a router chose other experts are no draw of rounding."""
    usual = [each.outputs for each in cases]
    yield usual
    experts = [_run(model, each)[1] for each in cases] if any(_routers(model)) else [[] for _ in cases]
    moved, generator = copy.deepcopy(model), torch.Generator().manual_seed(1)
    for _ in range(DRAWS - 1):
        for parameter in moved.parameters():
            parameter.copy_(_neighbours(parameter, generator))
        with _RoundedSigmoids(generator):
            found = [_run(moved, each) for each in cases]
        yield [
            outputs if all(map(torch.equal, chosen, right)) else before
            for (outputs, chosen), right, before in zip(found, experts, usual, strict=True)
        ]


def _routers(model: nn.Module) -> Iterator[Router]:
    return (module for module in model.modules() if isinstance(module, Router))


def _run(model: nn.Module, each: ExpectedCase) -> tuple[Mapping[str, Tensor], list[Tensor]]:
    """The outputs of a case, and the experts that routers chose, B T K of each call."""
    chosen: list[Tensor] = []

    def look(router: Router, args: Any, logits: Tensor) -> None:
        chosen.append(router.choose(logits)[1].sort(-1)[0])

    hooks = [router.register_forward_hook(look) for router in _routers(model)]
    try:
        return each.run(model, each.case), chosen
    finally:
        for hook in hooks:
            hook.remove()


def _neighbours(x: Tensor, generator: torch.Generator) -> Tensor:
    """x with some values replaced by the next number above or below."""
    drawn = torch.randint(2 * MOVED, x.shape, generator=generator, dtype=torch.uint8)
    towards = torch.where(drawn == 0, -torch.inf, torch.where(drawn == 1, torch.inf, x))
    return torch.nextafter(x, towards)


class _RoundedSigmoids(TorchFunctionMode):
    """Adds an error of a runtime's sigmoid to each sigmoid."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.generator = generator

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func not in (torch.sigmoid, F.silu):
            return result
        drawn = torch.rand(result.shape, generator=self.generator, dtype=result.dtype)  # from 0 to 1
        error = SIGMOID_ERROR * (2 * drawn - 1)
        return result + (error if func is torch.sigmoid else args[0] * error)
