"""Every emitter writes what its function computes, at sizes that the graph was not traced with."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from torch import nn

from exporters.graph import fusing
from exporters.graph.emitters import registry
from exporters.graph.emitters.registry import emitters
from exporters.graph.translate import NoEmitterError
from tests.exporters.graphs import Module, assert_same, graph_of, placeholder
from tests.thinned import one_in
from zoo import functional
from zoo.components.mixture import Matrices
from zoo.components.spans import LstmLayer
from zoo.ops.creation import size
from zoo.tracing.symbols import Symbols
from zoo.tracing.tracer import Tracer, UntraceableError

relaxed = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))

X, Y, I = "f B T 6", "f T 6", "i B T"  # noqa: E741
HEADS, GROUPS = "f B 4 T 6", "f B 2 S 6"

Function = Callable[..., Any]
CASES: list[tuple[Any, Function, tuple[str, ...]]] = []


def case(target: Any, function: Function, *inputs: str) -> None:
    CASES.append((target, function, inputs or (X,)))


target: Any
apply: Function
for name, infix in (("add", operator.add), ("sub", operator.sub), ("mul", operator.mul)):
    for target in (infix, getattr(torch, name), name):
        apply = (lambda x, y, name=name: getattr(x, name)(y)) if isinstance(target, str) else target
        case(target, apply, X, Y)
        case(target, apply, X, I.replace("B T", "B T 6"))
        case(target, apply, "i B T", "i 1 T")
        case(target, lambda x, apply=apply: apply(x, 1.5))
        case(target, lambda x, apply=apply: apply(x, 0))
        case(target, lambda x, apply=apply: apply(x, 1), I)
        case(target, lambda x, apply=apply: apply(x, 0.5), I)
        case(target, lambda x, apply=apply: apply(x, x.shape[1]))
    case(infix, lambda x, infix=infix: infix(1, x))
    case(infix, lambda x, infix=infix: infix(2.5, x), I)
    case(infix, lambda x, infix=infix: infix(x.shape[0], x), I)
case(operator.add, lambda x: x + 1, "b B T")
case(operator.sub, lambda x: functional.positions_from(x.shape[1] - 1, x.shape[0], x), X)
case(operator.mul, lambda x: x.reshape(x.shape[0] * x.shape[1], 6))
case(operator.add, lambda x: functional.positions_from(x.shape[1], x.shape[0] + x.shape[1], x))
case(operator.mul, lambda x: x * torch.tanh(x)[0, 0, 0], "f B T 6")
case(operator.mul, lambda x: x * functional.constant((2.0,), x)[0], "h B T 6")
case(functional.rounded_to_bfloat16, lambda x: functional.rounded_to_bfloat16(x))

for target in (operator.truediv, torch.div, "div"):
    apply = (lambda x, y: x.div(y)) if target == "div" else target
    case(target, apply, X, Y)
    case(target, lambda x, apply=apply: apply(x, 3))
    case(target, lambda x, apply=apply: apply(x, 1), I)
    case(target, lambda x, apply=apply: apply(x, 4), I)
    case(target, lambda x, apply=apply: apply(x, x.shape[1]), I)
case(operator.truediv, lambda x: 2 / (x.abs() + 1))
case(operator.floordiv, lambda x: x // 2, I)
case(operator.floordiv, lambda x: x // -2, I)
case(operator.floordiv, lambda x: 7 // (x.abs() + 1), I)
case(operator.floordiv, lambda x: x // 1, I)
case(operator.floordiv, lambda x: functional.positions_from(x.shape[1] // 2, x.shape[0], x))
case(operator.floordiv, lambda x: functional.positions_from(0, -(-x.shape[1] // 2), x))
case(operator.floordiv, lambda x: functional.positions_from((x.shape[1] - 5) // 2, 3, x))
case(operator.floordiv, lambda x: functional.positions_from(0, x.shape[1] * 2 // 2, x))
for target in (operator.pow, torch.pow, "pow"):
    apply = (lambda x, y: x.pow(y)) if target == "pow" else target
    case(target, lambda x, apply=apply: apply(x, 2))
    case(target, lambda x, apply=apply: apply(x, 1))
    case(target, lambda x, apply=apply: apply(x, 3), I)
    case(target, lambda x, apply=apply: apply(x.abs(), 0.5))
    case(target, lambda x, apply=apply: apply(x.abs(), 0.5), I)
    case(target, lambda x, y, apply=apply: apply(x.abs(), y), X, Y)
case(operator.pow, lambda x: 2**x)
case(operator.pow, lambda x: functional.positions_from(0, x.shape[0] ** 2, x))
for target in (torch.maximum, torch.minimum):
    case(target, target, X, Y)
    case(target, target, I, "i 1 T")
for target in (operator.and_, operator.or_):
    case(target, target, "b B T", "b 1 T")
    case(target, target, "i B T", "i 1 T")

for target in (operator.le, operator.lt, operator.ge, operator.gt, operator.eq, operator.ne):
    case(target, target, X, Y)
    case(target, target, I, "i 1 T")
    case(target, target, X, "i B T 6")
    case(target, lambda x, target=target: target(x, 1), I)
    case(target, lambda x, target=target: target(x, 0.5), I)
    case(target, lambda x, target=target: target(x, -1), X)
    case(target, lambda x, target=target: target(x, x.shape[1]), I)
case(operator.lt, lambda x: x.shape[1] < x, I)
case(operator.lt, lambda x: x < 2, I)
case(operator.eq, operator.eq, "b B T", "b 1 T")
case(operator.eq, lambda x: x == 2, "b B T")

case(F.normalize, lambda x: F.normalize(x, dim=-1))
case(F.normalize, lambda x: F.normalize(x * 1e-20, dim=-1))
case(F.normalize, lambda x: F.normalize(x * 0, dim=1))

case(torch.log, lambda x: torch.log(x.abs() + 0.5))
case("log", lambda x: (x.abs() + 0.5).log())
for name in ("abs", "neg", "sin", "cos", "tanh", "sigmoid", "exp"):
    for target in (getattr(torch, name), name):
        case(target, (lambda x, name=name: getattr(x, name)()) if isinstance(target, str) else target)
        case(target, (lambda x, name=name: getattr(x, name)()) if isinstance(target, str) else target, I)
case(operator.neg, operator.neg)
case(operator.neg, operator.neg, I)
case(operator.neg, lambda x: functional.positions_from(-x.shape[1], x.shape[0], x))
for name in ("sqrt", "rsqrt"):
    for target in (getattr(torch, name), name):
        apply = (lambda x, name=name: getattr(x, name)()) if isinstance(target, str) else target
        case(target, lambda x, apply=apply: apply(x.abs() + 0.5))
        case(target, lambda x, apply=apply: apply(x.abs() + 1), I)
case(F.relu, F.relu)
case(F.relu, F.relu, I)
case("relu", lambda x: x.relu())
case(F.silu, F.silu)
case(F.elu, F.elu)
case(F.elu, lambda x: F.elu(x, alpha=0.3))
case(F.softplus, lambda x: F.softplus(x * 10))
case(F.gelu, F.gelu)
case(F.gelu, lambda x: F.gelu(x, approximate="tanh"))
for target in (torch.clamp, "clamp"):
    apply = (lambda x, *a, **k: x.clamp(*a, **k)) if target == "clamp" else torch.clamp
    case(target, lambda x, apply=apply: apply(x, -0.5, 0.5))
    case(target, lambda x, apply=apply: apply(x, max=0.5))
    case(target, lambda x, apply=apply: apply(x, min=0), I)
    case(target, lambda x, apply=apply: apply(x, max=2), I)
    case(target, lambda x, apply=apply: apply(x, 0.5), I)
    case(target, lambda x, apply=apply: apply(x, max=x.shape[1] - 1), I)
    case(target, lambda x, apply=apply: apply(x, 2, -2), I)
for target in (torch.amax, "amax"):
    apply = (lambda x, *a, **k: x.amax(*a, **k)) if target == "amax" else torch.amax
    case(target, lambda x, apply=apply: apply(x, (0, 1), keepdim=True), I)
    case(target, lambda x, apply=apply: apply(x, -1))
for target in (torch.topk, "topk"):
    apply = (lambda x, *a, **k: x.topk(*a, **k)) if target == "topk" else torch.topk
    case(target, lambda x, apply=apply: apply(x, 2)[0])
    case(target, lambda x, apply=apply: apply(x, 4, dim=-1)[1])
    case(target, lambda x, apply=apply: apply(x, 3, -1, largest=False)[0])
case(
    "scatter",
    lambda x, i, y: x.scatter(2, i * 0 + functional.positions_from(1, 3, i), y),
    "f B 2 6", "i B 2 3", "f B 2 3",
)  # fmt: skip
for target in (torch.gather, "gather"):
    apply = (lambda x, *a: x.gather(*a)) if target == "gather" else torch.gather
    case(target, lambda x, apply=apply: apply(x, -1, x.topk(2)[1]))
    case(target, lambda x, i, apply=apply: apply(x, 0, i * 0), X, "i 1 T 4")
case(
    functional.gated_delta_rule,
    lambda x, y: functional.gated_delta_rule(
        x, F.normalize(x, dim=-1), y, -y[..., 0].exp(), y[..., 1].sigmoid(), None, None
    ),
    HEADS,
    HEADS,
)
case(
    functional.generalized_delta_rule,
    lambda x, y: functional.generalized_delta_rule(
        x, y, y, -x.sigmoid(), F.normalize(x, dim=-1), F.normalize(x, dim=-1) * y.sigmoid(), None, None
    ),
    HEADS,
    HEADS,
)
for target in (torch.cumsum, "cumsum"):
    apply = (lambda x, dim: x.cumsum(dim)) if target == "cumsum" else torch.cumsum
    case(target, lambda x, apply=apply: apply(x, 1))
    case(target, lambda x, apply=apply: apply(x, -1), I)
    case(target, lambda x, apply=apply: apply(x, 0), "b B T")
    case(target, lambda x, apply=apply: apply(x, 1), "s B T")
case(torch.where, lambda c, x, y: torch.where(c, x, y), "b B T 1", X, Y)
case(torch.where, lambda c, x: torch.where(c, x, -1e9), "b B T 1", X)
case(torch.where, lambda c, x: torch.where(c, 0.5, x), "b B T", I)
case(torch.where, lambda c: torch.where(c, 1.0, 0.0), "b B T")
case(torch.where, lambda c: torch.where(c, 3, -4), "b B T")
case(torch.where, lambda c, x: torch.where(c, x, x.shape[1]), "b B T", I)
case(torch.where, torch.where, "b B T 6", X, "i B T 6")
case("to", lambda x: x.to(torch.float32), I)
case("to", lambda x: x.to(torch.bool), I)
case("to", lambda x: x.to(dtype=torch.int64))
case("to", lambda x, y: x.to(y), I, X)
case("to", lambda x: x.to(x.device), I)
case("type", lambda x: x.type(torch.int32))
case("float", lambda x: x.float(), I)
for name in ("mean", "sum"):
    for target in (getattr(torch, name), name):
        apply = (
            (lambda x, *a, name=name, **k: getattr(x, name)(*a, **k)) if isinstance(target, str) else target
        )
        case(target, lambda x, apply=apply: apply(x, 1))
        case(target, lambda x, apply=apply: apply(x, -1, True))
        case(target, lambda x, apply=apply: apply(x, (0, -1), keepdim=True))
        case(target, lambda x, apply=apply: apply(x, dim=[1]))
        case(target, lambda x, apply=apply: apply(x))
for target in (torch.sum, "sum"):
    for kind in ("i", "b", "s"):
        case(target, (lambda x: x.sum(1)) if target == "sum" else lambda x: torch.sum(x, 1), f"{kind} B T")
case(F.softmax, lambda x: F.softmax(x, dim=-1))
case(F.softmax, lambda x: F.softmax(x, 1, dtype=torch.float32), I)
case("softmax", lambda x: x.softmax(1))
for target in (operator.matmul, torch.matmul, "matmul"):
    apply = (lambda x, y: x.matmul(y)) if target == "matmul" else target
    case(target, apply, "f B T 6", "f 6 5")
    case(target, apply, "f B 1 T 6", "f 3 6 T")
    case(target, apply, "f B T 6", "f 6")
    case(target, apply, "f 6", "f 6 T")


def linear(bias: bool, width: int = 6) -> nn.Module:
    return nn.Linear(width, 5, bias=bias)


WITH_PARTS: list[tuple[Any, Function, tuple[str, ...], dict[str, nn.Module]]] = []


def with_parts(target: Any, function: Function, *inputs: str, **parts: nn.Module) -> None:
    WITH_PARTS.append((target, function, inputs or (X,), parts))


torch.manual_seed(0)
for bias in (True, False):
    with_parts(F.linear, lambda layer, x: layer(x), a=linear(bias))
    with_parts(F.linear, lambda layer, x: layer(x), "f B 6", a=linear(bias))
    with_parts(F.linear, lambda layer, x: layer(x), "f 6", a=linear(bias))
    with_parts(F.linear, lambda layer, x: layer(x), "f B T 3 6", a=linear(bias))
    with_parts(F.linear, lambda layer, x: layer(x[:, : x.shape[1] // 2 + 1]), a=linear(bias))
    with_parts(F.linear, lambda layer, x: layer(x.flatten(0, 1)).tanh(), a=linear(bias))
    with_parts(F.linear, lambda a, b, x: b(F.relu(a(x))), a=linear(bias), b=nn.Linear(5, 6, bias=bias))
with_parts(F.embedding, lambda table, x: table(x.abs()), I, a=nn.Embedding(6, 4))
RECURRENCES: dict[Any, tuple[Function, tuple[str, ...]]] = {
    functional.linear_attention: (
        lambda q, k, v, d, *rest: functional.linear_attention(q, k, v, -d.abs(), *rest),
        ("f B 2 T 6", "f B 2 T 6", "f B 4 T 5", "f B 4 T", "f B 4 6 5"),
    ),
    functional.selective_scan: (
        lambda x, d, a, *rest: functional.selective_scan(x, d.abs(), -a.abs(), *rest),
        ("f B T 6", "f B T 6", "f 6 3", "f B T 3", "f B T 3", "f B 6 3"),
    ),
    functional.diagonal_recurrence: (
        lambda x, d, *rest: functional.diagonal_recurrence(x, -d.abs(), *rest),
        ("f B T 6", "f B T 6", "f B 6"),
    ),
}
both_ways = LstmLayer(6)
for parameter in both_ways.parameters():
    nn.init.normal_(parameter)
with_parts(functional.lstm, lambda layer, x, n: layer(x, (n > 0).to(torch.int64).sum(1)), X, I, a=both_ways)
case(functional.most_numbered, lambda n: n * functional.most_numbered(n.abs()), I)
for target, (apply, texts) in RECURRENCES.items():
    case(target, lambda *given, apply=apply: apply(*given, None), *texts)
    case(target, lambda *given, apply=apply: apply(*given[:-1], (given[-1] > 0).to(torch.int64)), *texts, I)
    case(target, lambda *given, apply=apply: apply(*given, None, None), *texts[:-1])

for bias in (True, False):
    with_parts(F.conv1d, lambda c, x: c(x), "f B 4 8", a=nn.Conv1d(4, 6, 3, 2, padding=1, bias=bias))
    with_parts(F.conv1d, lambda c, x: c(x), "f B 4 9", a=nn.Conv1d(4, 6, 3, dilation=2, groups=2, bias=bias))
    with_parts(F.conv2d, lambda c, x: c(x), "f B 3 9 7", a=nn.Conv2d(3, 5, (3, 2), (2, 1), (0, 1), bias=bias))
with_parts(F.conv1d, lambda c, x: c(x.transpose(1, 2)).transpose(1, 2) + 1, "f B T 4", a=nn.Conv1d(4, 6, 1))
with_parts(F.conv1d, lambda c, x: c(x.transpose(1, 2)), "f B T 4", a=nn.Conv1d(4, 6, 3, 2, padding=1))
with_parts(
    F.embedding, lambda table, x: F.embedding(x.abs(), table.weight[:6]), "s B T", a=nn.Embedding(9, 4)
)
for bias in (True, False):
    held = Matrices(4, nn.Linear(6, 5, bias=bias))
    for parameter in held.parameters():
        nn.init.normal_(parameter)
    with_parts(
        functional.expert_linear,
        lambda m, x: functional.expert_linear(x, m.weight, m.bias, x[..., :4].topk(1)[1].squeeze(-1)),
        a=held,
    )
    with_parts(
        functional.expert_linear,
        lambda m, x: functional.expert_linear(x.unsqueeze(-2), m.weight, m.bias, x[..., :4].topk(3)[1]).sum(-2),
        "f T 6", a=held,
    )  # fmt: skip
with_parts(F.dropout, lambda drop, x: drop(x) + 1, a=nn.Dropout(0.5))
with_parts(F.dropout, lambda drop, x: F.dropout(x, 0.5, drop.training) + 1, a=nn.Dropout(0.5))
with_parts(F.dropout, lambda drop, x: F.dropout(x, p=0.5, training=drop.training) + 1, a=nn.Dropout(0.5))
with_parts(F.dropout, lambda drop, x: F.dropout(x, 0.0) + 1, a=nn.Dropout(0.5))
for shape in ((6,), (3, 6)):
    text = "f B T 6" if len(shape) == 1 else "f B T 3 6"
    norm, rms, bare = nn.LayerNorm(shape, eps=0.3), nn.RMSNorm(shape, eps=0.3), nn.RMSNorm(shape)
    for part in (norm, rms, bare):
        for parameter in part.parameters():
            nn.init.normal_(parameter)
    with_parts(F.layer_norm, lambda norm, x: norm(x), text, a=norm)
    with_parts(F.layer_norm, lambda norm, x: norm(x), text, a=nn.LayerNorm(shape, bias=False))
    with_parts(F.layer_norm, lambda norm, x: norm(x), text, a=nn.LayerNorm(shape, elementwise_affine=False))
    with_parts(F.rms_norm, lambda norm, x: norm(x), text, a=rms)
    with_parts(F.rms_norm, lambda norm, x: norm(x * 1e-4), text, a=bare)
    with_parts(F.rms_norm, lambda norm, x: norm(x), text, a=nn.RMSNorm(shape, elementwise_affine=False))

for target in ("unflatten", torch.unflatten):
    apply = (lambda x, *a: x.unflatten(*a)) if isinstance(target, str) else torch.unflatten
    case(target, lambda x, apply=apply: apply(x, -1, (2, 3)))
    case(target, lambda x, apply=apply: apply(x, 2, (-1, 2)))
    case(target, lambda x, apply=apply: apply(x, 0, (-1, 1)))
    case(target, lambda x, apply=apply: apply(x.flatten(0, 1), 0, (-1, x.shape[1])))
for target in ("flatten", torch.flatten):
    apply = (lambda x, *a: x.flatten(*a)) if isinstance(target, str) else torch.flatten
    case(target, lambda x, apply=apply: apply(x, 1))
    case(target, lambda x, apply=apply: apply(x, 0, 1))
    case(target, lambda x, apply=apply: apply(x, -2))
    case(target, lambda x, apply=apply: apply(x))
    case(target, lambda x, apply=apply: apply(x, 0, 1), "f B 3 T 6")
    case(target, lambda x, apply=apply: apply(x, 1, 2), "f B T 3 U")
for target in ("view", "reshape", torch.reshape):
    apply = (
        (lambda x, *s, name=target: getattr(x, name)(*s))
        if isinstance(target, str)
        else lambda x, *s: torch.reshape(x, s)
    )
    case(target, lambda x, apply=apply: apply(x, x.shape[0], x.shape[1], 3, 2))
    case(target, lambda x, apply=apply: apply(x, x.shape[0], -1, 3))
    case(target, lambda x, apply=apply: apply(x, -1, x.shape[1], 6))
    case(target, lambda x, apply=apply: apply(x, x.shape[0] * x.shape[1], 6))
    case(target, lambda x, apply=apply: apply(x, x.shape[0] * 2, x.shape[1] * 3))
    case(target, lambda x, apply=apply: apply(x, x.shape[1], x.size(0), -1).tanh().reshape(-1, 2))
    case(target, lambda x, apply=apply: apply(x, -1))
case("view", lambda x: x.view((x.shape[0], -1)))
case("reshape", lambda x: x.reshape([6, -1]))
case("contiguous", lambda x: x.transpose(0, 1).contiguous() + 0.5)
case("clone", lambda x: x.clone() + 0.5)
case("detach", lambda x: x.detach() + 0.5)
for target in (torch.chunk, "chunk"):
    apply = (lambda x, *a: x.chunk(*a)) if target == "chunk" else torch.chunk
    case(target, lambda x, apply=apply: apply(x, 4, -1)[1] + 0.5)
    case(target, lambda x, apply=apply: apply(x, 4, 2)[2] + 0.5)
for target in (torch.split, "split"):
    apply = (lambda x, *a: x.split(*a)) if target == "split" else torch.split
    case(target, lambda x, apply=apply: apply(x, 4, -1)[1] + 0.5)
    case(target, lambda x, apply=apply: apply(x, [1, 2, 3], 2)[2] + 0.5)
for target in (torch.narrow, "narrow"):
    apply = (lambda x, *a: x.narrow(*a)) if target == "narrow" else torch.narrow
    case(target, lambda x, apply=apply: apply(x, -1, 1, 2) + 0.5)
    case(target, lambda x, apply=apply: apply(x, 1, x.shape[1] - 1, 1) + 0.5)
    case(target, lambda x, apply=apply: apply(x, 1, 0, x.shape[1] - 1) + 0.5)
for target in ("transpose", torch.transpose):
    apply = (lambda x, *a: x.transpose(*a)) if isinstance(target, str) else torch.transpose
    case(target, lambda x, apply=apply: apply(x, 0, 1))
    case(target, lambda x, apply=apply: apply(x, -1, 0))
    case(target, lambda x, apply=apply: apply(x, 1, 1))
for target in ("permute", torch.permute):
    case(
        target,
        (lambda x: x.permute(2, 0, 1)) if isinstance(target, str) else lambda x: torch.permute(x, (2, 0, 1)),
    )
    case(
        target,
        (lambda x: x.permute((-1, 0, 1)))
        if isinstance(target, str)
        else lambda x: torch.permute(x, [-1, 0, 1]),
    )
for target in ("unsqueeze", torch.unsqueeze):
    apply = (lambda x, a: x.unsqueeze(a)) if isinstance(target, str) else torch.unsqueeze
    for axis in (0, 1, -1, -2):
        case(target, lambda x, apply=apply, axis=axis: apply(x, axis))
for target in ("squeeze", torch.squeeze):
    apply = (lambda x, a: x.squeeze(a)) if isinstance(target, str) else torch.squeeze
    case(target, lambda x, apply=apply: apply(x, 1), "f B 1 T")
    case(target, lambda x, apply=apply: apply(x, -2), "f B 1 T")
    case(target, lambda x, apply=apply: apply(x, 1) + 1, "f B 6 T")
case("expand", lambda x: x.expand(x.shape[0], 4, x.shape[2]), "f B 1 T")
case("expand", lambda x: x.expand(2, -1, -1, 6))
case("expand", lambda x: x[:, :1].expand(x.shape))
case("expand", lambda x: x[None, :1].expand(x.shape[0] * 2, -1, -1, -1), "f B T 6")
case(torch.cat, lambda x, y: torch.cat((x, y), 1), X, "f B U 6")
case(torch.cat, lambda x, y: torch.cat([y, x, y], dim=-1), X, "f B T 2")
case(torch.cat, lambda x: torch.cat((x[..., :0], x), -1) + 1)
case(torch.cat, lambda x: torch.cat((x[..., :0], x[..., :0]), -1).sum(-1))
case(torch.cat, lambda x, y: torch.cat((x, y), -1), X, "i B T 2")
case(torch.cat, lambda x: torch.cat((x[..., :0].float(), x), -1) + 1, "h B T 4")
case(torch.stack, lambda x, y: torch.stack((x, y)), X, "f B T 6")
case(torch.stack, lambda x, y: torch.stack((x, y), -1), X, "i B T 6")
case(operator.getitem, lambda x: x[:, 0])
case(operator.getitem, lambda x: x[:, -1, None, ::2])
case(operator.getitem, lambda x: x[..., 1:-1])
case(operator.getitem, lambda x: x[0, ..., None])
case(operator.getitem, lambda x: x[:, x.shape[1] // 2 :, -2])
case(operator.getitem, lambda x: x[:, : x.shape[1] - 1, :] + 1)
case(operator.getitem, lambda x: x[:, x.shape[1] - 1])
case(operator.getitem, lambda x: x[:, -x.shape[1] :])
case(operator.getitem, lambda x: x[:, -5:])
case(operator.getitem, lambda x: x[:, 600:])
case(operator.getitem, lambda x: x[:] + 1)


def attend(q: Any, k: Any, v: Any, bias: Any = None, **options: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, **options)


case(F.scaled_dot_product_attention, attend, HEADS, "f B 4 S 6", "f B 4 S 6")
case(F.scaled_dot_product_attention, attend, HEADS, "f B 4 S 6", "f B 4 S 3", "f B 1 T S")
case(
    F.scaled_dot_product_attention,
    lambda *a: attend(*a, scale=1.0),
    HEADS, "f B 4 S 6", "f B 4 S 6", "f 4 T S",
)  # fmt: skip
case(F.scaled_dot_product_attention, lambda *a: attend(*a, scale=0.3), HEADS, "f B 4 S 6", "f B 4 S 6")
for heads in ("1", "2", "4"):
    grouped = (f"f B {heads} S 6", f"f B {heads} S 3")
    case(F.scaled_dot_product_attention, lambda *a: attend(*a, enable_gqa=True), HEADS, *grouped)
    case(F.scaled_dot_product_attention, lambda *a: attend(*a, enable_gqa=True), HEADS, *grouped, "f B 4 T S")

case(size, lambda x: x + x.size(1))
case(size, lambda x: x[:, 1:] + x[:, 1:].shape[1])
case(functional.positions_from, lambda x: functional.positions_from(0, x.shape[1], x))
case(functional.positions_from, lambda x: functional.positions_from(2, 5, x) + x.shape[0])
case(functional.positions_from, lambda x: functional.positions_from(x.shape[0], x.shape[1], x))
case(functional.constant, lambda x: functional.constant((1.0, 2.5), x) + x[..., :1])
case(functional.constant, lambda x: functional.constant((3, 4), x) + x[..., :1])

SIZES = (
    {"B": 1, "T": 1, "S": 2, "U": 1},
    {"B": 2, "T": 3, "S": 1, "U": 5},
    {"B": 3, "T": 8, "S": 5, "U": 2},
)


def title(value: Any) -> str:
    return value if isinstance(value, str) else getattr(value, "__name__", "")


def traced_targets(module: nn.Module, inputs: tuple[str, ...]) -> set[Any]:
    given = [placeholder(f"x{i}", text) for i, text in enumerate(inputs)]
    call = lambda model, values: {"y": model(*values.values())}  # noqa: E731
    graph = Tracer(module, Symbols.of(given, ())).run(call, given)
    return {node.target for node in graph.nodes}


def test_every_emitter_has_a_case() -> None:
    fused = {t for t in emitters() if str(getattr(t, "__module__", "")).startswith(fusing.__name__)}
    assert emitters().keys() - fused == {target for target, *_ in [*CASES, *WITH_PARTS]}


@one_in(5)
@pytest.mark.parametrize(("target", "function", "inputs"), CASES, ids=[title(target) for target, *_ in CASES])
def test_an_emitter_computes_its_function(target: Any, function: Function, inputs: tuple[str, ...]) -> None:
    assert target in traced_targets(Module(function), inputs)
    assert_same(function, *inputs, sizes=SIZES)


@one_in(5)
@pytest.mark.parametrize(
    ("target", "function", "inputs", "parts"), WITH_PARTS, ids=[title(target) for target, *_ in WITH_PARTS]
)
def test_an_emitter_of_a_layer_computes_its_function(
    target: Any, function: Function, inputs: tuple[str, ...], parts: dict[str, nn.Module]
) -> None:
    module = Module(function, **parts).eval()
    assert target in traced_targets(module, inputs)
    assert_same(module, *inputs, sizes=SIZES)


REFUSED: list[tuple[Function, tuple[str, ...], str]] = [
    (
        lambda x: x // 2,
        (X,),
        "calls floordiv, which has no ONNX emitter for these arguments\n  Floor division of floats",
    ),
    (lambda x, y: x.clamp(min=y), (X, Y), "Bounds must be numbers: for tensors use torch.maximum and torch.minimum"),
    (lambda x: F.dropout(x, 0.5), (X,), "Dropout must be off outside training: pass training=self.training"),
    (lambda x: F.normalize(x, p=1.0, dim=-1), (X,), "The norm must be Euclidean"),
    (lambda q: attend(q, q, q, is_causal=True), (HEADS,), "use zoo.functional.attention"),
    (lambda q, m: attend(q, q, q, m), (HEADS, "b T T"), "use zoo.functional.attention"),
    (lambda q: attend(q, q, q, dropout_p=0.1), (HEADS,), "use zoo.functional.attention"),
    (lambda q: attend(q, q, q), ("f B T 6",), "use zoo.functional.attention"),
    (lambda x: x.squeeze(0), (X,), "Axis 0 must have the same size for every input"),
    (lambda x: torch.einsum("btc->bct", x), (X,), "calls einsum, which has no ONNX emitter\n  Register it with"),
    (lambda x: torch.roll(x, 1, -1), (X,), "calls roll, which has no ONNX emitter\n  Register it with"),
    (lambda x: x.chunk(2, 1)[0], (X,), "Axis 1 must have the same size for every input"),
]  # fmt: skip


def test_a_bug_in_an_emitter_is_no_unsupported_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(call: Any, x: Any) -> Any:
        raise TypeError("a bug")

    monkeypatch.setitem(registry._emitters, torch.tanh, broken)
    with pytest.raises(TypeError, match="a bug"):
        graph_of(Module(torch.tanh), X)


def test_arguments_that_an_emitter_does_not_take_are_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._emitters, torch.tanh, lambda call: None)
    with pytest.raises(
        NoEmitterError, match=r"tanh, which has no ONNX emitter for these arguments\n  at .*\n  Too many"
    ):
        graph_of(Module(torch.tanh), X)


@pytest.mark.parametrize(("function", "inputs", "message"), REFUSED)
def test_unsupported_arguments_are_refused(function: Function, inputs: tuple[str, ...], message: str) -> None:
    with pytest.raises(NoEmitterError) as error:
        graph_of(Module(function), *inputs)
    assert message in re.sub(r"\n  at .*", "", str(error.value))
    assert f"\n  at {__file__}:" in str(error.value)
    assert str(error.value).startswith("The model calls ")
    assert str(error.value).endswith("or export with via torch.")


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (slice(None, None, -1), "slice steps must be positive"),
        ((0, 0, 7), "index 7 is out of range for an axis of size 6"),
        ((0, 0, -7), "index -7 is out of range for an axis of size 6"),
        ((0, 0, 0, 0), "4 indices for a tensor with 3 axes"),
        ([0, 0], "indexing with a tensor or a list"),
        (True, "indexing with a tensor or a list"),
    ],
)
def test_an_index_that_torch_refuses_or_that_gathers_is_refused(index: Any, message: str) -> None:
    with pytest.raises(UntraceableError, match=message):
        graph_of(Module(lambda x: x[index]), X)


def test_a_fixed_axis_is_not_cut_at_a_symbolic_size() -> None:
    with pytest.raises(
        UntraceableError, match="an axis of size 6 is sliced at a size known only at run time"
    ):
        graph_of(Module(lambda x: x[..., : x.shape[1]]), X)


def bounds(last: int) -> st.SearchStrategy[Any]:
    """A bound of a slice: a number, or a size of the tensor and what is computed from it."""
    of_size = st.sampled_from([lambda n: n, lambda n: n - 1, lambda n: n // 2, lambda n: -n, lambda n: n + 2])
    return st.none() | st.integers(-last, last) | of_size


@st.composite
def indices(draw: st.DrawFn) -> tuple[Any, ...]:
    """An index into B T 6, in which functions stand for sizes computed from T."""
    parts: list[Any] = []
    for axis in range(draw(st.integers(0, 3))):
        whole = st.builds(slice, bounds(9), bounds(9), st.sampled_from([None, 1, 2, 3]))
        number = st.sampled_from([0, -1]) if axis < 2 else st.integers(-6, 5)
        parts.append(draw(whole | whole | number))
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), Ellipsis)
        later = parts[parts.index(Ellipsis) + 1 :]
        parts = [*parts[: len(parts) - len(later)], *(_mild(part) for part in later)]
    for _ in range(draw(st.integers(0, 2))):
        parts.insert(draw(st.integers(0, len(parts))), None)
    return tuple(parts)


def _mild(part: Any) -> Any:
    return part if isinstance(part, slice) else 0


def _symbolic(part: slice) -> bool:
    return callable(part.start) or callable(part.stop)


def _last_axis(index: tuple[Any, ...]) -> list[Any]:
    """The part of an index into three axes that reads the last of them, if any does."""
    parts = [part for part in index if part is not None]
    if Ellipsis in parts:
        at = parts.index(Ellipsis)
        parts[at : at + 1] = [slice(None)] * (4 - len(parts))
    return parts[2:]


@relaxed
@given(indices())
@example((slice(None, None, 2), None, 0, Ellipsis))
def test_indexing(index: tuple[Any, ...]) -> None:
    def at(value: Any, length: Any) -> Any:
        if isinstance(value, slice):
            return slice(*(at(bound, length) for bound in (value.start, value.stop, value.step)))
        return value(length) if callable(value) else value

    def indexed(x: Any) -> Any:
        return x[tuple(at(part, x.shape[1]) for part in index)] + 1

    lengths = ({"B": 1, "T": 1}, {"B": 2, "T": 7})
    if any(isinstance(part, slice) and _symbolic(part) for part in _last_axis(index)):
        return  # an axis of a fixed size may not be cut at a symbolic one
    assert_same(indexed, X, sizes=lengths)


@relaxed
@given(st.data())
def test_broadcasting(data: st.DataObject) -> None:
    full = ["B", "3", "T", "1"]
    one, two = (
        [data.draw(st.sampled_from([dim, "1"])) for dim in full][data.draw(st.integers(0, 3)) :]
        for _ in range(2)
    )
    operation = data.draw(
        st.sampled_from([operator.add, operator.mul, torch.maximum, operator.le, operator.truediv])
    )
    kinds = st.sampled_from("fi")
    texts = [" ".join([data.draw(kinds), *dims]) for dims in (one, two)]
    if operation is torch.maximum:
        texts = [f"f{text[1:]}" for text in texts]
    assert_same(lambda x, y: operation(x, y), *texts)


@relaxed
@given(st.permutations(range(4)), st.permutations(["B", "T", "2", "3"]), st.integers(0, 2), st.integers(0, 3))
def test_permutations_then_flattening_then_a_layer(
    order: list[int], dims: list[str], start: int, more: int
) -> None:
    end = min(3, start + more)
    assert_same(lambda x: x.permute(*order).flatten(start, end).tanh(), " ".join(["f", *dims]))


def last_positions(queries: Any, keys: Any, like: Any) -> tuple[Any, Any]:
    """The positions of the last of some tokens, and of all: 1 T and 1 S."""
    positions = functional.positions_from(0, keys, like)[None]
    return positions[:, keys - queries :], positions


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("past", [0, 5])
def test_attention_with_a_cache_of_any_length(groups: int, past: int) -> None:
    def attention(query: Any, old: Any, new: Any) -> Any:
        keys = functional.append(old, new)
        at = last_positions(query.shape[2], keys.shape[2], query)
        bias = functional.attention_bias(None, None, *at, query, causal=True)
        return functional.attention(query, keys, keys, bias, scale=0.4)

    inputs = "f B 4 T 6", f"f B {groups} P 6", f"f B {groups} T 6"
    assert_same(attention, *inputs, sizes=[{"B": 2, "T": length, "P": past} for length in (1, 3)])


@one_in(3)
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("softcap", [None, 0.7])
@pytest.mark.parametrize("sunk", [True, False])
def test_attention_with_a_cap_and_sinks(groups: int, softcap: float | None, sunk: bool) -> None:
    def attention(query: Any, keys: Any, values: Any, mask: Any, sinks: Any) -> Any:
        bias = functional.attention_bias(mask, None, None, None, query, causal=False)
        given = sinks if sunk else None
        return functional.attention(query, keys, values, bias, scale=0.4, softcap=softcap, sinks=given)

    inputs = "f B 4 T 6", f"f B {groups} S 6", f"f B {groups} S 5", "i B S", "f 4"
    sizes = [{"B": 2, "T": 3, "S": 5}, {"B": 1, "T": 1, "S": 1}]
    assert_same(attention, *inputs, sizes=sizes)


def test_a_sink_is_a_key_whose_value_is_zero_and_a_cap_bounds_the_scores() -> None:
    query, keys, values = torch.randn(2, 4, 3, 6), torch.randn(2, 2, 5, 6), torch.randn(2, 2, 5, 6)
    sinks, bias = torch.randn(4), torch.randn(3, 5)
    scores = 0.7 * torch.tanh(
        torch.einsum("bhtk,bhsk->bhts", query, keys.repeat_interleave(2, 1)) * 0.4 / 0.7
    )
    weights = (scores + bias).exp()
    weights = weights / (weights.sum(-1, keepdim=True) + sinks.exp()[:, None, None])
    expected = torch.einsum("bhts,bhsk->bhtk", weights, values.repeat_interleave(2, 1))
    found = functional.attention(query, keys, values, bias, scale=0.4, softcap=0.7, sinks=sinks)
    torch.testing.assert_close(found, expected)
    nothing = functional.attention(query, keys, values, bias * 0 - 3e38, scale=0.4, sinks=sinks)
    assert float(nothing.abs().max()) == 0.0


@pytest.mark.parametrize("causal", [True, False])
def test_a_window(causal: bool) -> None:
    x = torch.zeros(1)
    seen = functional.attention_bias(None, None, *last_positions(4, 7, x), x, causal=causal, window=4)
    assert seen is not None
    for query in range(4):
        at = query + 3
        reach = range(at - 3, at + 1) if causal else range(at - 2, at + 3)
        assert [key for key in range(7) if seen[0, 0, query, key] == 0] == [
            key for key in reach if key in range(7)
        ]


def test_a_chunk() -> None:
    x = torch.zeros(1)
    seen = functional.attention_bias(None, None, *last_positions(4, 7, x), x, causal=True, chunk=4)
    assert seen is not None
    visible = [[key for key in range(7) if seen[0, 0, query, key] == 0] for query in range(4)]
    assert visible == [[0, 1, 2, 3], [4], [4, 5], [4, 5, 6]]


def test_numbers_rounded_to_bfloat16() -> None:
    assert_same(lambda x: x.to(torch.float32).to(torch.bfloat16).to(torch.float32), "i B T", sizes=SIZES)
    assert_same(lambda x: (x * 1.00390625).to(torch.bfloat16).to(torch.float32), "f B T", sizes=SIZES)


def test_a_row_with_every_key_masked_is_the_mean_of_all_values() -> None:
    def attention(query: Any, keys: Any, mask: Any) -> Any:
        bias = functional.attention_bias(mask * 0, None, None, None, query, causal=False)
        return functional.attention(query, keys, keys, bias, scale=0.4)

    assert_same(attention, "f B 4 T 6", "f B 2 S 6", "i B S", sizes=SIZES)
    values = torch.randn(1, 2, 3, 6)
    masked = attention(torch.randn(1, 4, 2, 6), values, torch.ones(1, 3))
    torch.testing.assert_close(masked[0, 0, 0], values[0, 0].mean(0))


@one_in(3)
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("limit", [{}, {"window": 2}, {"chunk": 2}])
def test_the_bias_of_a_stack(causal: bool, biased: bool, masked: bool, limit: dict[str, Any]) -> None:
    def bias(x: Any, mask: Any, position: Any) -> Any:
        found = functional.attention_bias(
            (mask > 0) if masked else None, position if biased else None,
            *last_positions(x.shape[1], mask.shape[1], x), x, causal=causal or "chunk" in limit, **limit,
        )  # fmt: skip
        return x.sum() if found is None else found

    sizes = [{"B": 2, "T": 3, "S": 3}, {"B": 1, "T": 1, "S": 4}, {"B": 3, "T": 2, "S": 6}]
    assert_same(bias, X, "i B S", "f 1 4 T S", sizes=sizes)


@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize("dimensions", [2, 4, 6])
def test_rotary_embeddings(interleaved: bool, dimensions: int) -> None:
    def rotate(x: Any, mask: Any) -> Any:
        positions = functional.token_positions((mask > 0).to(torch.int64), x.shape[2])
        angles = functional.angles(positions, tuple(0.5**i for i in range(dimensions // 2)))
        return functional.rotary_embedding(
            x, angles.cos(), angles.sin(), dimensions=dimensions, interleaved=interleaved
        )

    assert_same(rotate, "f B 4 T 6", "i B S", sizes=[{"B": 2, "T": 3, "S": 5}, {"B": 1, "T": 1, "S": 1}])


def test_writing_into_a_cache() -> None:
    def write(past: Any, new: Any, row: Any) -> Any:
        return functional.write(past, new, (row > 0).to(torch.int64) * 2)

    sizes = [{"B": 1, "T": 1}, {"B": 3, "T": 3}, {"B": 4, "T": 5}]
    assert_same(write, "f B 2 7 4", "f B 2 T 4", "i B", sizes=sizes)
    written = functional.write(torch.zeros(2, 1, 4, 1), torch.ones(2, 1, 2, 1), torch.tensor([0, 2]))
    assert written[:, 0, :, 0].tolist() == [[1, 1, 0, 0], [0, 0, 1, 1]]
