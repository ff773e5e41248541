"""The rules of mixers in plain operations, in the place of the PyTorch operations that this project defines."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from zoo import functional
from zoo.functional.delta import delta_rule
from zoo.functional.generalized_delta import generalized_rule

PLAIN: dict[Any, Callable[..., Any]] = {
    inspect.unwrap(functional.gated_delta_rule): delta_rule,
    inspect.unwrap(functional.generalized_delta_rule): generalized_rule,
}
"""By the function that calls an operation of this project: the same without it."""
