"""The search for a layer whose inputs or results exceed the range of a dtype."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from exporters.verification.cases import Case
from exporters.verification.reference import full_pass


def overflow_of(model: nn.Module, cases: Iterable[Case], dtype: torch.dtype) -> str:
    """Return a sentence that names the layer with the largest inputs or results in float32, if they exceed the range of a
    dtype; otherwise an empty string."""
    largest: dict[str, float] = {}

    def look(path: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, output: Tensor) -> None:
            if output.is_meta:  # a call for shapes alone
                return
            for verb, values in (("reads", args[0]), ("gives", output)):
                seen = f"{path} {verb}"
                largest[seen] = max(largest.get(seen, 0.0), float(values.abs().max()))

        return hook

    layers = [(path, module) for path, module in model.named_modules() if isinstance(module, nn.Linear)]
    hooks = [module.register_forward_hook(look(path)) for path, module in layers]
    for case in cases:
        full_pass(model, case)
    for handle in hooks:
        handle.remove()
    seen, value = max(largest.items(), key=lambda item: item[1], default=("", 0.0))
    limit = torch.finfo(dtype).max
    if value <= limit:
        return ""
    return (
        f"{seen} values up to {value:.1e}, but {str(dtype).removeprefix('torch.')} holds at most {limit:.1e}."
    )
