"""The rule, if any, by which one tensor of a checkpoint gives one of a variant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor, nn

from specs.kinds.patches import Patches
from specs.model.model import Model
from zoo.adapting import rules
from zoo.adapting.rules import COPIED, Derivation
from zoo.components.attention import Projections
from zoo.components.block import Block
from zoo.components.feed_forward import MLP, Gated
from zoo.components.mixer import Mixer
from zoo.components.mixture import Mixture
from zoo.components.position import Learned
from zoo.core.facts import KIND, UNIT_OFFSET

_ALIKE = ({"multi_head", "grouped_query", "multi_query"}, {"layer_norm", "rms_norm"})
"""Kinds whose tensors mean the same."""


@dataclass(frozen=True)
class Pair:
    """A tensor of the variant and one of the source, with their names and the models that they are in."""

    name: str
    stored_name: str
    tensor: Tensor
    stored: Tensor
    model: nn.Module
    source: nn.Module

    @property
    def leaf(self) -> str:
        """The tensor's name in its module."""
        return self.name.rpartition(".")[2]

    @property
    def owner_name(self) -> str:
        """The name of the tensor's module in the module around it."""
        return self.name.rpartition(".")[0].rpartition(".")[2]

    def modules(self) -> Iterator[tuple[nn.Module, nn.Module]]:
        """The modules around the two tensors, from the models' children inwards."""
        ours, theirs = self.name.split(".")[:-1], self.stored_name.split(".")[:-1]
        for depth in range(1, min(len(ours), len(theirs)) + 1):
            yield (
                self.model.get_submodule(".".join(ours[:depth])),
                self.source.get_submodule(".".join(theirs[:depth])),
            )


def rule_of(pair: Pair, variant: Model, source: Model) -> Derivation | None:
    """Return the rule, or None where the tensor of the source means something else or has an unfit shape."""
    rule: Derivation | None = None
    for ours, theirs in pair.modules():
        if isinstance(ours, Mixture) and isinstance(theirs, MLP | Gated):
            return _for_experts(pair, ours, theirs)
        if not _alike(ours, theirs) and not pair.name.startswith("head."):
            return None
        if isinstance(ours, Projections) and isinstance(theirs, Projections):
            return _of_attention(pair, ours, theirs)
        if isinstance(ours, Mixer) and not (isinstance(theirs, Mixer) and ours.state == theirs.state):
            return None
        if isinstance(ours, Learned) and isinstance(theirs, Learned):
            return _of_positions(pair, (ours, variant), (theirs, source))
        if isinstance(ours, MLP | Gated):
            rule = _of_hidden(pair, ours, theirs)
        if (by := UNIT_OFFSET.of(theirs) - UNIT_OFFSET.of(ours)) and (
            pair.leaf == "weight" and pair.tensor.shape == pair.stored.shape
        ):
            return rules.shifted(float(by))
    if pair.tensor.shape == pair.stored.shape:
        return COPIED
    return rule or _of_vocabulary(pair)


def _alike(ours: nn.Module, theirs: nn.Module) -> bool:
    """Whether the tensors of two modules mean the same."""
    if isinstance(ours, Block) and isinstance(theirs, Block):
        return True
    kinds = {KIND.of(ours), KIND.of(theirs)}
    return len(kinds) == 1 or any(kinds <= alike for alike in _ALIKE)


def _of_attention(pair: Pair, ours: Projections, theirs: Projections) -> Derivation | None:
    if (ours.width, ours.value_width) != (theirs.width, theirs.value_width):
        return None
    width = ours.value_width if pair.owner_name == "value" else ours.width
    grouped = rules.heads(theirs.key_value_heads, ours.key_value_heads, width)
    same_heads = COPIED if ours.heads == theirs.heads else None
    fits = pair.tensor.shape == pair.stored.shape
    match pair.owner_name:
        case "key" | "value":
            return grouped if pair.tensor.shape[1:] == pair.stored.shape[1:] else None
        case "query_norm" | "key_norm" if ours.norm_over != theirs.norm_over:
            return None
        case "query_norm" | "key_norm" if ours.norm_over == "head":
            return COPIED if fits else None
        case "key_norm":
            return grouped
    return same_heads if fits else None


def _of_positions(
    pair: Pair, ours: tuple[Learned, Model], theirs: tuple[Learned, Model]
) -> Derivation | None:
    (table, variant), (stored, source) = ours, theirs
    if pair.tensor.shape == pair.stored.shape:
        return COPIED
    grids = [_patches(spec) for spec in (variant, source)]
    if any(grids):
        wanted, held = grids
        if wanted is None or held is None or wanted.tokens_before != held.tokens_before:
            return None
        before = len(pair.tensor) - wanted.side**2
        return rules.patch_rows(held.side, wanted.side, before)
    if table.offset != stored.offset:
        return None
    return rules.position_rows(
        len(pair.stored) - stored.offset, len(pair.tensor) - table.offset, table.offset
    )


def _patches(spec: Model) -> Patches | None:
    """The patches that the learned positions of a model with one stack are of."""
    embedding = spec.embedding_of(spec.first_stack)
    return embedding if isinstance(embedding, Patches) else None


def _of_hidden(pair: Pair, ours: MLP | Gated, theirs: nn.Module) -> Derivation | None:
    assert isinstance(theirs, MLP | Gated)
    held, wanted = theirs.up.out_features, ours.up.out_features
    if wanted <= held:
        return None
    if pair.owner_name == "down":
        return rules.wider(held, wanted, 1, zeros=True) if pair.leaf == "weight" else None
    return rules.wider(held, wanted, 0, zeros=False)


def _for_experts(pair: Pair, ours: Mixture, theirs: MLP | Gated) -> Derivation | None:
    """The rule of the experts of a mixture from a feed-forward of the same kind."""
    gated = ours.experts.gate is not None
    fits = pair.tensor.shape[1:] == pair.stored.shape
    return rules.upcycled(pair.tensor.shape[0]) if gated == isinstance(theirs, Gated) and fits else None


def _of_vocabulary(pair: Pair) -> Derivation | None:
    """The rule of a token table, of the matrix that scores tokens, and of its bias."""
    dims = [
        dim
        for dim, sizes in enumerate(zip(pair.tensor.shape, pair.stored.shape, strict=False))
        if sizes[0] != sizes[1]
    ]
    scored = pair.owner_name in ("token", "vocabulary") or pair.name == "head.bias"
    if not scored or pair.tensor.dim() != pair.stored.dim() or len(dims) != 1:
        return None
    (dim,) = dims
    if pair.tensor.dim() == 2 and dim == 1 and pair.leaf == "weight":  # another width
        return None
    return rules.rows(pair.stored.shape[dim], pair.tensor.shape[dim], dim)
