"""The rounding error of float32, which bounds the differences allowed for models that amplify it.

If a model amplifies rounding, its error at the most sensitive output is a random number, and two correct computations may
differ by any multiple of one sample: the ratio of two samples is unbounded. The bound is therefore the largest of several
draws: PyTorch's own error, and the errors of slightly perturbed copies of the model.
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

from exporters.verification.reference import Expected, ExpectedCase, Reference, real_places
from zoo.components.router import Router, routers_of
from zoo.core.tensors import weight_bytes

EXACT_BYTES = 1_000_000_000
"""The largest size of a model that runs in float64 to judge a difference, in bytes of weights."""

DRAWS = 8
"""The number of draws of the rounding error."""

MOVED = 8
"""One in this many weights moves to a neighbouring float32 between draws: too little to matter itself, but every sum of such
a weight rounds anew."""

SIGMOID_ERROR = 2.0**-23
"""The error of a sigmoid in ONNX Runtime: about a unit in the last place of 1, whatever the result (measured on CPU: up to 1.6e-7).
PyTorch's error is a unit in the last place of the result. SiLU multiplies it by inputs far below 0, whose results are almost 0."""

TANH_ERROR = 2.75 * 2.0**-23
"""The error of a tanh in ONNX Runtime, whatever the result (measured on CPU: up to 3.3e-7, for inputs from -12 to -5). GELU by
tanh multiplies half of it by its inputs."""


def roundings_of(reference: Reference, expected: Expected) -> Callable[[], Mapping[str, float]]:
    """The largest distance between float32 and float64 in all draws, by output; empty for models too large for float64."""

    @functools.cache
    def roundings() -> Mapping[str, float]:
        model = reference.model
        if weight_bytes(model) > EXACT_BYTES:
            return {}
        wide = copy.deepcopy(model).double()
        exact = [expected_case.run(wide, expected_case.case) for expected_case in expected.cases]
        del wide
        largest = dict[str, float]()
        for rounded in _draws(model, expected.cases):
            for expected_case, right, outputs in zip(expected.cases, exact, rounded, strict=True):
                for output, value in right.items():
                    real = real_places(expected_case.case, output, expected.per_token, torch.float32)
                    difference = float((value[real] - outputs[output][real]).abs().max())
                    largest[output] = max(difference, largest.get(output, 0.0))
        return largest

    return roundings


def _draws(model: nn.Module, cases: Sequence[ExpectedCase]) -> Iterator[list[Mapping[str, Tensor]]]:
    """Yield the outputs of all cases in each draw.

    The first draw is the model itself; the others are a copy whose weights move a little further each time, with sigmoids and
    tanhs as in ONNX Runtime. Outputs for which a router chose other experts are not draws of rounding error.
    """
    first_draw = [case.outputs for case in cases]
    yield first_draw
    experts = [_run(model, case)[1] for case in cases] if any(routers_of(model)) else [[] for _ in cases]
    moved, generator = copy.deepcopy(model), torch.Generator().manual_seed(1)
    for _ in range(DRAWS - 1):
        for parameter in moved.parameters():
            parameter.copy_(_neighbours(parameter, generator))
        with _RuntimeActivations(generator):
            runs = [_run(moved, case) for case in cases]
        yield [
            outputs if all(map(torch.equal, chosen, right)) else before
            for (outputs, chosen), right, before in zip(runs, experts, first_draw, strict=True)
        ]


def _run(model: nn.Module, expected: ExpectedCase) -> tuple[Mapping[str, Tensor], list[Tensor]]:
    """Return the outputs of a case, and the experts that routers chose, B T K for each call."""
    chosen: list[Tensor] = []

    def look(router: Router, args: Any, logits: Tensor) -> None:
        chosen.append(router.choose(logits)[1].sort(-1)[0])

    hooks = [router.register_forward_hook(look) for router in routers_of(model)]
    try:
        return expected.run(model, expected.case), chosen
    finally:
        for hook in hooks:
            hook.remove()


def _neighbours(x: Tensor, generator: torch.Generator) -> Tensor:
    """x with some values replaced by the next number above or below."""
    drawn = torch.randint(2 * MOVED, x.shape, generator=generator, dtype=torch.uint8)
    towards = torch.where(drawn == 0, -torch.inf, torch.where(drawn == 1, torch.inf, x))
    return torch.nextafter(x, towards)


class _RuntimeActivations(TorchFunctionMode):
    """Adds ONNX Runtime's error to each sigmoid and tanh, and the resulting error to SiLU and to GELU by tanh."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.generator = generator

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func in (torch.sigmoid, F.silu):
            return result + self._error(SIGMOID_ERROR, result, args[0] if func is F.silu else 1.0)
        if func is torch.tanh:
            return result + self._error(TANH_ERROR, result, 1.0)
        if func is F.gelu and kwargs.get("approximate") == "tanh":
            return result + self._error(TANH_ERROR, result, args[0] / 2)
        return result

    def _error(self, largest: float, like: Tensor, factor: Tensor | float) -> Tensor:
        """Random errors of at most ``largest``, times a factor."""
        drawn = torch.rand(like.shape, generator=self.generator, dtype=like.dtype)  # from 0 to 1
        return largest * (2 * drawn - 1) * factor
