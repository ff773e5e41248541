"""The rules of mixers in plain operations, in the place of the PyTorch operations that this project defines."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from torch import Tensor

from zoo import functional
from zoo.functional.delta import delta_rule
from zoo.functional.generalized_delta import generalized_rule


def gated_delta_rule(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    decay: Tensor,
    beta: Tensor,
    state: Tensor | None,
    real: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """S_t = a_t S_(t-1) + beta_t k_t (v_t - a_t S_(t-1)^T k_t)^T and S_t^T q_t of every token, and the last S."""
    mixed, last = delta_rule(query, key, value, decay, beta, state, real)
    return mixed.to(query.dtype), last


def generalized_delta_rule(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    decay: Tensor,
    recall: Tensor,
    erase: Tensor,
    state: Tensor | None,
    real: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """S_t = (I - e_t r_t^T) diag(w_t) S_(t-1) + k_t v_t^T and S_t^T q_t of every token, and the last S."""
    mixed, last = generalized_rule(query, key, value, decay, recall, erase, state, real)
    return mixed.to(query.dtype), last


PLAIN: dict[Any, Callable[..., Any]] = {
    inspect.unwrap(each): plain
    for each, plain in (
        (functional.gated_delta_rule, gated_delta_rule),
        (functional.generalized_delta_rule, generalized_delta_rule),
    )
}
"""By the function that calls an operation of this project: the same without it."""
