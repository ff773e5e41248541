"""Functions of positions in float64, for targets whose arithmetic is inexact.

WGSL allows sines and cosines an absolute error of 2^-11 for angles up to pi, and states none beyond; its logarithms and
divisions may miss by some units in the last place (WebGPU Shading Language, 15.7.4), which moves a token to another bucket
where they are rounded to integers. No kernel of WebGPU takes float64, so that the processor computes these few values.
Every intermediate result is rounded to float32, as in the model: the values are the same.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

import torch
from torch import fx

from exporters.fusing.rewriter import Rewriter
from exporters.targets import Target
from zoo.ops import TensorInfo

SINES: dict[Any, float] = {"sin": 0.0, torch.sin: 0.0, "cos": math.pi / 2, torch.cos: math.pi / 2}
"""The functions, and what to add to an angle so that its sine is the result: processors have no kernel for cosines of float64."""

ARITHMETIC: frozenset[Any] = frozenset(
    (operator.mul, operator.add, operator.sub, operator.truediv, operator.pow, operator.neg, torch.where)
) | {torch.mul, torch.add, torch.log, torch.abs, "log", "abs", "clamp"}
MOVES: frozenset[Any] = frozenset(
    (operator.getitem, torch.cat, torch.stack, "expand", "flatten", "transpose", "unflatten", "unsqueeze")
)
"""The operations that only move values."""

CASTS: frozenset[Any] = frozenset(("to", "float"))


def compute_positions_in_double(rewriter: Rewriter, target: Target) -> None:
    """Compute sines, cosines and roundings to integers in float64, where all before them is made of integers and constants."""
    if not target.coarse_functions:
        return
    wide: dict[fx.Node, fx.Node] = {}
    for node in list(rewriter.graph.nodes):
        given = node.args[0] if node.args else None
        if node.target not in CASTS and node.target not in SINES:
            continue
        if not isinstance(given, fx.Node) or not _floats([given]) or not _is_made_of_integers(given):
            continue
        if node.target in SINES:
            turned, turn = _widened(rewriter, given, wide), SINES[node.target]
            turned = rewriter.insert(node, operator.add, turned, turn) if turn else turned
            sine = rewriter.insert(node, "sin", turned)
            rewriter.replace(node, rewriter.insert(node, "to", sine, torch.float32))
        elif not _floats([node]):
            whole = rewriter.insert(node, "to", _widened(rewriter, given, wide), node.meta["info"][0].dtype)
            rewriter.replace(node, whole)


def _floats(nodes: Iterable[fx.Node]) -> list[fx.Node]:
    """Those among nodes that are tensors of floats."""
    infos = [(node, node.meta["info"][0]) for node in nodes]
    return [node for node, info in infos if isinstance(info, TensorInfo) and info.dtype.is_floating_point]


def _is_whole(node: fx.Node) -> bool:
    """Whether a node is a tensor of integers."""
    info = node.meta["info"][0]
    return isinstance(info, TensorInfo) and info.dtype in (torch.int64, torch.int32)


def _is_made_of_integers(node: fx.Node) -> bool:
    """Whether a tensor of float32 is computed from integers and constants, by operations that float64 has too."""
    if node.op in ("placeholder", "get_attr") or node.meta["info"][0].dtype != torch.float32:
        return False
    before = _floats(node.all_input_nodes)
    known = not before or node.target in ARITHMETIC | MOVES | CASTS
    return known and all(map(_is_made_of_integers, before))


def _widened(rewriter: Rewriter, node: fx.Node, wide: dict[fx.Node, fx.Node]) -> fx.Node:
    """A tensor of float32 in float64: its values are rounded to float32."""
    if node not in wide:
        wide[node] = _new_widened(rewriter, node, wide)
    return wide[node]


def _new_widened(rewriter: Rewriter, node: fx.Node, wide: dict[fx.Node, fx.Node]) -> fx.Node:
    floats = _floats(node.all_input_nodes)
    if node.target in CASTS:
        given: Any = node.args[0]
        return (
            _widened(rewriter, given, wide) if floats else rewriter.insert(node, "to", given, torch.float64)
        )
    if node.target not in ARITHMETIC | MOVES:
        return rewriter.insert(node.next, "to", node, torch.float64, path=node.meta.get("path", ""))

    def widen(argument: Any) -> Any:
        if isinstance(argument, float):
            return torch.tensor(argument, dtype=torch.float32).item()
        if argument in floats:
            return _widened(rewriter, argument, wide)
        counts = node.target in ARITHMETIC and isinstance(argument, fx.Node) and _is_whole(argument)
        return rewriter.insert(node, "to", argument, torch.float64) if counts else argument

    args, kwargs = (fx.node.map_aggregate(given, widen) for given in (node.args, node.kwargs))
    found = rewriter.insert(node, node.target, *args, **kwargs)  # type: ignore[misc]
    if node.target in MOVES:
        return found
    return rewriter.insert(node, "to", rewriter.insert(node, "to", found, torch.float32), torch.float64)
