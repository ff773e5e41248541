"""What a training step computes and keeps, read from the trace of the whole forward pass.

The backward pass has a matrix product of the same size for every gradient that a product of the forward pass gives: of
its weight, and of its input where a parameter comes before it.  Between the two passes is kept what autograd keeps; with
checkpointing the inputs of every layer, and one layer at a time anew.

A twin with one layer of each kind is traced, and for each kind one with a layer more: the difference is the layer's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import fx

from specs.model import Model
from zoo.builder import assemble
from zoo.reports.costs import expert_shares, share
from zoo.reports.keeping import Kept, kept_values, root, trained_values
from zoo.reports.layers import layer_kinds, with_another
from zoo.reports.polynomial import Polynomial
from zoo.reports.trace import Trace, outputs_by_name
from zoo.reports.work import products_at
from zoo.tracing.facts import Facts
from zoo.tracing.tasks import training_task
from zoo.twin import twin


@dataclass(frozen=True)
class Checkpointed:
    """Bytes where only the inputs of layers are kept: ``kept`` all the time, and in turn one of ``layers`` beside it."""

    kept: Polynomial
    layers: tuple[Polynomial, ...]

    def at(self, **sizes: int) -> int:
        """The most that is kept at once."""
        return self.kept.at(**sizes) + max((layer.at(**sizes) for layer in self.layers), default=0)

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {"kept": self.kept.as_dict(), "layers": [layer.as_dict() for layer in self.layers]}


@dataclass(frozen=True)
class Passes:
    """FLOPs of the matrix products of a training step, and of the layers' forward pass, which checkpointing repeats."""

    forward: Polynomial
    backward: Polynomial
    layers: Polynomial

    @property
    def total(self) -> Polynomial:
        """Forward and backward."""
        return self.forward + self.backward

    @property
    def checkpointed(self) -> Polynomial:
        """The same with the layers' forward pass once more."""
        return self.total + self.layers

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        parts = {"forward": self.forward, "backward": self.backward, "recomputed": self.layers}
        return {name: part.as_dict() for name, part in parts.items()}


@dataclass(frozen=True)
class Training:
    """A training step of B sequences with T tokens, and S of the encoder where it is another's.

    ``active`` is ``passes`` with only the experts that tokens are sent to.  Activations are bytes, with attention and RMS
    norms as one kernel each, and ``unfused`` with every step of theirs.
    """

    passes: Passes
    active: Passes
    activations: Polynomial
    unfused: Polynomial
    checkpointed: Checkpointed

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "matmul": self.passes.as_dict(),
            "matmul_active": self.active.as_dict(),
            "activations": self.activations.as_dict(),
            "activations_unfused": self.unfused.as_dict(),
            "activations_checkpointed": self.checkpointed.as_dict(),
        }


def training(spec: Model, dtype: torch.dtype = torch.float32) -> Training:
    """What a training step of a spec's model comes to, with weights in a dtype.

    Raises as :func:`zoo.reports.costs.costs` does.
    """
    small = twin(spec, layers=1)
    base = _Step.of(small, dtype)
    total, kinds = base.sums, layer_kinds(spec, small)
    for kind, layers in kinds.items():
        if len(layers) > 1:
            longer = _Step.of(with_another(small, kind), dtype).sums
            total = {
                name: total[name] + (longer[name] - base.sums[name]) * (len(layers) - 1) for name in total
            }
    passes, active = (
        Passes(*(total[f"{part} {of}"] for part in ("forward", "backward", "layers")))
        for of in ("all", "active")
    )
    checkpointed = Checkpointed(total["inputs"], tuple(dict.fromkeys(base.recomputed)))
    return Training(passes, active, total["kept"], total["unfused"], checkpointed)


@dataclass(frozen=True)
class _Step:
    """The sums of one trace by name, and what each of its layers keeps beside its inputs."""

    sums: dict[str, Polynomial]
    recomputed: list[Polynomial]

    @classmethod
    def of(cls, spec: Model, dtype: torch.dtype) -> _Step:
        model = assemble(spec, dtype)
        model.train()
        trace, shares = Trace(model, training_task(spec)), expert_shares(model)
        blocks = [f"{name}.blocks.{layer}" for name, stack in spec.stacks() for layer in range(stack.depth)]
        layer_of = {node: _layer(node, blocks) for node in trace.graph.nodes}
        sums = _passes(trace, shares, layer_of)

        def size(kept: Iterable[Kept]) -> Polynomial:
            return Polynomial.sum(trace.polynomial(each.by, each.bytes_at) for each in kept)

        fused = kept_values(trace.graph, fused=True)
        inputs = _inputs(trace.graph, fused, layer_of)
        there = {kept.value for kept in inputs if kept.extra is None}
        inner = [kept for kept in fused if layer_of[kept.by] and (kept.extra or kept.value not in there)]
        sums |= {
            "kept": size(fused),
            "unfused": size(kept_values(trace.graph, fused=False)),
            "inputs": size(inputs),
        }
        return cls(sums, [size(kept for kept in inner if layer_of[kept.by] == block) for block in blocks])


def _layer(node: fx.Node, blocks: Iterable[str]) -> str | None:
    """The layer in whose forward pass a value is made."""
    return next((block for block in blocks if block in node.meta.get("within", ())), None)


def _passes(
    trace: Trace, shares: dict[str, tuple[int, int]], layer_of: dict[fx.Node, str | None]
) -> dict[str, Polynomial]:
    trained = trained_values(trace.graph)
    parts: dict[str, list[Polynomial]] = {
        f"{part} {of}": [] for part in ("forward", "backward", "layers") for of in ("all", "active")
    }
    for node in trace.calls:
        whole = trace.polynomial(node, partial(products_at, node))
        if not whole:
            continue
        for of, products in (("all", whole), ("active", share(whole, shares.get(node.meta["path"])))):
            parts[f"forward {of}"].append(products)
            parts[f"backward {of}"].append(products * _gradients(node, trained))
            if layer_of[node]:
                parts[f"layers {of}"].append(products)
    return {name: Polynomial.sum(part) for name, part in parts.items()}


def _gradients(node: fx.Node, trained: set[fx.Node]) -> int:
    """How many of the two factors of a product have a gradient; attention has two products, and three factors."""
    if node not in trained:
        return 0
    factors = [each for each in node.args[:2] if each in trained]
    return len(factors)


def _inputs(graph: fx.Graph, kept: Iterable[Kept], layer_of: dict[fx.Node, str | None]) -> list[Kept]:
    """What is kept where layers are checkpointed: what goes into a layer, what is kept outside of them, the outputs."""
    found: dict[Any, Kept] = {}
    for each in kept:
        if layer_of[each.by] is None:
            found[each.value if each.extra is None else each] = each
    for node in graph.nodes:
        for given in node.all_input_nodes if layer_of[node] else ():
            outside = layer_of[given] != layer_of[node] and given.op != "get_attr"
            if outside and isinstance(given.meta["facts"][0], Facts):
                found.setdefault(root(given), Kept(node, root(given)))
    for result in outputs_by_name(graph).values():
        found.setdefault(root(result), Kept(result, root(result)))
    return list(found.values())
