"""Heads: from the last hidden state to the named outputs of a model.

Each takes x: B T D, and the tokens.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

import specs.kinds.head as spec
from zoo.components.activation import activation
from zoo.components.linear import Linear
from zoo.components.pooling import TokenSequence, pool
from zoo.context import StackContext
from zoo.registry import builds


def token_outputs(head: nn.Module, d_model: int) -> frozenset[str]:
    """The outputs of heads with one entry per token, B T ...; all others have one per sequence, B ...

    The class of a head states them as ``per_token``; those of other heads, such as a plugin's, are found by running the head.
    """
    names: frozenset[str] | None = vars(type(head)).get("per_token")
    return found_token_outputs(head, d_model) if names is None else names


def found_token_outputs(head: nn.Module, d_model: int) -> frozenset[str]:
    """The outputs that are longer for three tokens than for two.

    Operations on meta tensors import a part of PyTorch that takes a second to load.
    """
    parameter = next(head.parameters(), torch.empty(0))
    held = (*head.named_parameters(), *head.named_buffers())
    weights = {name: tensor.to("meta") for name, tensor in held}

    def sizes(length: int) -> dict[str, tuple[int, ...]]:
        x = torch.zeros(1, length, d_model, dtype=parameter.dtype, device="meta")
        ids = torch.zeros(1, length, dtype=torch.int64, device="meta")
        outputs = functional_call(head, weights, (x, TokenSequence(ids, None)))
        return {name: tuple(output.shape[1:2]) for name, output in outputs.items()}

    with torch.no_grad():
        two, three = sizes(2), sizes(3)
    return frozenset(name for name in two if two[name] != three[name])


@builds(spec.NoHead)
class NoHead(nn.Module):
    """last_hidden_state: B T D."""

    per_token: ClassVar[frozenset[str]] = frozenset({"last_hidden_state"})

    def __init__(self, spec: spec.NoHead, context: StackContext) -> None:
        super().__init__()

    def forward(self, x: Tensor, tokens: TokenSequence) -> dict[str, Tensor]:
        return {"last_hidden_state": x}


@builds(spec.Pooler)
class Pooler(nn.Module):
    """last_hidden_state: B T D, and pooler_output: B D, of the first token."""

    per_token: ClassVar[frozenset[str]] = frozenset({"last_hidden_state"})

    def __init__(self, spec: spec.Pooler, context: StackContext) -> None:
        super().__init__()
        self.dense = Linear(context.d_model, context.d_model)
        self.activation = activation(spec.activation)

    def forward(self, x: Tensor, tokens: TokenSequence) -> dict[str, Tensor]:
        return {
            "last_hidden_state": x,
            "pooler_output": self.activation(self.dense(pool(x, tokens, "first"))),
        }
