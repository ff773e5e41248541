"""The layer whose results exceed the range of a dtype."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from exporters.cases import Case
from exporters.reference import full_pass


def overflow_of(model: nn.Module, cases: Iterable[Case], dtype: torch.dtype) -> str:
    """Return a sentence naming the layer with the largest results in float32 where they exceed the range of a dtype;
    otherwise empty."""
    largest: dict[str, float] = {}

    def look(path: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, output: Tensor) -> None:
            largest[path] = max(largest.get(path, 0.0), float(output.abs().max()))

        return hook

    layers = [(path, module) for path, module in model.named_modules() if isinstance(module, nn.Linear)]
    hooks = [module.register_forward_hook(look(path)) for path, module in layers]
    for case in cases:
        full_pass(model, case)
    for each in hooks:
        each.remove()
    path, result = max(largest.items(), key=lambda item: item[1], default=("", 0.0))
    limit = torch.finfo(dtype).max
    if result <= limit:
        return ""
    return f"{path} gives values up to {result:.1e}, but {str(dtype).removeprefix('torch.')} holds at most {limit:.1e}."
