"""Reduced models: smaller specs that stand in for one too large to run, with fewer layers or experts, or narrower ones.

Sizes are found by the role that a field states (:mod:`specs.base.roles`), so that the parts of plugins are reduced as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from specs.base.base import Component, Spec
from specs.base.roles import Role, fields_by_role, head_widths, pairs_scaled, rewritten
from specs.kinds.connector import ConnectorKind
from specs.kinds.head import HeadKind
from specs.kinds.mixture import Mixture
from specs.model.model import Expectation, Model
from specs.model.stack import LayerRun, Stack

SMALL_VOCABULARY = 1024
SMALL_CONTEXT = 1024
SMALL_SIDE, SMALL_AUDIO = 3, 24
SMALL_LIMITS = {Role.WINDOW: 4, Role.SOFTCAP: 2.0, Role.CLIP: 1.0}
SMALL_SWITCH_LENGTH = 16


def reduced_models(spec: Model) -> Iterator[tuple[Model, str]]:
    """Ever smaller stand-ins for a spec, each with its description."""
    smaller = fewer_layers(spec)
    depths = {name: (stack.depth, smaller.stack(name).depth) for name, stack in spec.stacks()}
    shortened = " and ".join(f"{kept} of {depth} {name} layers" for name, (depth, kept) in depths.items())
    description = f"a reduced model of {shortened}"
    yield smaller, description
    if small_tables(smaller) != smaller:
        smaller = small_tables(smaller)
        description += (
            f" with a vocabulary of {smaller.vocab_size:,}"
            if smaller.vocab_size
            else " with a shorter context"
        )
        yield smaller, description
    if fewer_experts(smaller) != smaller:
        smaller = fewer_experts(smaller)
        description += " and fewer experts"
        yield smaller, description
    for divisor in (2, 4, 8, 16, 32, 64):
        try:
            yield narrowed(smaller, divisor), f"{description}, at 1/{divisor} of the widths"
        except ValidationError:
            continue


def fewer_layers(spec: Model, layers: int = 2) -> Model:
    """The same model with at most ``layers`` layers in each stack, or one per kind of block if there are more kinds; if more than
    one, with one for each layer of images whose vectors are added in the decoder.

    Every block in use occurs, in the order of the original, and the first layer is its own; so is the last, unless layers reuse
    keys and values.
    """
    deep = spec.connector.deep_count if spec.connector is not None and layers > 1 else 0
    counts = {name: max(layers, deep) if name == "decoder" else layers for name, _ in spec.stacks()}
    stacks: dict[str, Any] = {name: _shortened(stack, counts[name]) for name, stack in spec.stacks()}
    if spec.connector is not None and spec.connector.deepstack and spec.image:
        stacks["connector"] = _reading_kept(spec.connector, kept_layers(spec.image, counts["image"]))
    return spec.model_copy(update={**stacks, "expect": Expectation()})


def kept_layers(stack: Stack, layers: int) -> list[int]:
    """The indices of the layers that a reduced model keeps."""
    kinds = stack.layer_kinds()
    first_use = {kind: index for index, kind in reversed(list(enumerate(kinds)))}
    if not stack.reusing_layers:
        first_use[kinds[-1]] = len(kinds) - 1  # otherwise another layer may reuse what its first one computes
    kept = set(first_use.values())
    others = (index for index in range(len(kinds)) if index not in kept)
    return sorted([*kept, *(index for index, _ in zip(others, range(layers - len(kept)), strict=False))])


def small_tables(spec: Model) -> Model:
    """The same model with a vocabulary and a context of at most 1024."""
    vocabulary = _at_most(spec.vocab_size, SMALL_VOCABULARY)
    sizes = {
        "vocab_size": vocabulary,
        "context_length": _at_most(spec.context_length, SMALL_CONTEXT),
        "head": _seeking_below(spec.head, vocabulary or 0),
        "connector": _placed_below(spec.connector, vocabulary or 0),
        "embedding": spec.embedding.with_mask_below(vocabulary or 0),
    }
    stacks: dict[str, Stack] = {
        name: stack.model_copy(
            update={
                "context_length": _at_most(stack.context_length, SMALL_CONTEXT),
                "head": stack.head and _seeking_below(stack.head, vocabulary or 0),
                "embedding": stack.embedding and stack.embedding.with_mask_below(vocabulary or 0),
            }
        )
        for name, stack in spec.stacks()
    }
    return spec.model_copy(update={**sizes, **stacks, "expect": Expectation()})


def small_inputs(spec: Model) -> Model:
    """The same model for images of at most 3 x 3 patches, or 2 x 2 squares of patches that a connector joins, or 9 vectors of a
    resampler, and audio of at most 24 vectors; tokens are unchanged."""
    square = 1 if spec.connector is None else spec.connector.square
    changes: dict[str, Any] = {}
    for name, stack in spec.stacks():
        embedding = spec.embedding_of(stack)
        smaller = embedding.of_fewer_patches(SMALL_SIDE, square)
        if smaller is not embedding:
            changes[name] = stack.model_copy(update={"embedding": smaller})
        elif not embedding.any_length:
            context = _at_most(spec.context_length_of(stack), SMALL_AUDIO)
            changes[name] = stack.model_copy(update={"context_length": context})
    if spec.connector is not None:
        connector = spec.connector.of_fewer_vectors(SMALL_SIDE**2)
        changes |= {} if connector is spec.connector else {"connector": connector}
    return spec.model_copy(update={**changes, "expect": Expectation()}) if changes else spec


def _at_most(size: int | None, limit: int) -> int | None:
    return None if size is None else min(size, limit)


def small_limits(spec: Model) -> Model:
    """The same model with windows, soft caps and clips so small that a few tokens of ordinary size meet them."""

    def lower(part: Spec) -> dict[str, Any]:
        limits = ((name, SMALL_LIMITS.get(role), value) for name, role, value in fields_by_role(part))
        return {name: min(value, most) for name, most, value in limits if most and value is not None}

    return validated(spec, lower)


def narrowed(spec: Model, divisor: int) -> Model:
    """The same model with its widths divided by ``divisor``, and as many heads, each narrower.

    Even widths stay even.  Raises :class:`pydantic.ValidationError` where a kind does not allow the smaller widths.
    """

    return checked(rewritten_stacks(spec, lambda part, d_model: narrower_fields(part, d_model, divisor)))


def narrower_fields(part: Spec, d_model: int, divisor: int) -> dict[str, Any]:
    """The fields of a part that depend on its widths, with the widths divided by ``divisor``."""
    changes: dict[str, Any] = {}
    for name, role, value in _stated_widths(part, d_model):
        if role is Role.PER_ROTATED_PAIR:
            changes[name] = value[: _divided(2 * len(value), divisor) // 2]
        elif role is Role.PAIRS_BY_AXIS:
            changes[name] = pairs_scaled(value, _divided(2 * sum(value), divisor) // 2)
        elif role in (Role.WIDTH, Role.HEAD_WIDTH, Role.ROTATED):
            changes[name] = _divided(value, divisor)
    return changes


def _stated_widths(part: Spec, d_model: int) -> Iterator[tuple[str, Role, Any]]:
    """The fields of a part with a role and a value; the width of a head is derived where it is not stated."""
    heads = 0
    for name, role, value in fields_by_role(part):
        heads = value if role is Role.HEADS else heads
        if role is Role.HEAD_WIDTH and value is None and heads and name in head_widths(part):
            value = d_model // heads
        if value is not None:
            yield name, role, value


def fewer_experts(spec: Model) -> Model:
    """The same model with the fewest experts that show how they are chosen: some are not, and some groups are not."""

    def drop(part: Spec) -> dict[str, Any]:
        if not isinstance(part, Mixture):
            return {}
        groups = part.router.groups
        count, top, score_top_k = (
            (groups.count, groups.top, groups.group_score_top_k) if groups else (1, 1, 1)
        )
        size = max(part.top_k // top + 1, score_top_k, -(-2 * part.top_k // count))
        return {"experts": min(part.experts, count * size)}

    return validated(spec, drop)


def short_switch_lengths(spec: Model) -> Model:
    """The same model with rope switch lengths of at most 16 tokens."""

    def shorten(part: Spec) -> dict[str, Any]:
        lengths = (
            (name, value) for name, role, value in fields_by_role(part) if role is Role.ROPE_SWITCH_LENGTH
        )
        return {name: min(length, SMALL_SWITCH_LENGTH) for name, length in lengths}

    return validated(spec, shorten)


def validated(spec: Model, change: Callable[[Spec], Mapping[str, Any]]) -> Model:
    """The spec with ``change`` applied to every part, checked again and without expected parameter counts.

    Raises :class:`pydantic.ValidationError` where the new values do not go together.
    """
    return checked(rewritten(spec, change))


def rewritten_stacks(spec: Model, change: Callable[[Spec, int], Mapping[str, Any]]) -> Model:
    """The spec with ``change`` applied to every part and the width of its stack; the result is not validated."""

    def at(d_model: int) -> Callable[[Spec], Mapping[str, Any]]:
        return lambda part: change(part, d_model)

    stacks: dict[str, Any] = {
        name: rewritten(stack, at(spec.width_of(stack))) for name, stack in spec.stacks()
    }
    others = spec.model_copy(update=dict.fromkeys(stacks))
    return rewritten(others, at(spec.output_width)).model_copy(update=stacks)


def checked(spec: Model) -> Model:
    """The spec validated again, without expected parameter counts."""
    return Model.model_validate(spec.model_dump(exclude={"expect"}))


def _seeking_below(head: HeadKind, vocabulary: int) -> HeadKind:
    """A head that looks for a token of a smaller vocabulary, where it looks for one."""
    token = head.token_to_find
    if token is None or token < vocabulary:
        return head
    return head.seeking(vocabulary - 1)


def _placed_below(connector: ConnectorKind | None, vocabulary: int) -> ConnectorKind | None:
    """A connector whose placeholder is a token of a smaller vocabulary."""
    if connector is None:
        return connector
    return connector.model_copy(update={"token": min(connector.token, vocabulary - 1)})


def _reading_kept(connector: Any, kept: Sequence[int]) -> Component:
    """A connector that reads, of the layers of images that are kept, the last one up to each that it read."""
    layers = tuple(
        max((index for index, layer in enumerate(kept) if layer <= wanted), default=0)
        for wanted in connector.deepstack.layers
    )
    deepstack = connector.deepstack.model_copy(update={"layers": layers})
    return connector.model_copy(update={"deepstack": deepstack})


def _shortened(stack: Stack, layers: int) -> Stack:
    names, owners = stack.block_names(), stack.owners()
    kept = kept_layers(stack, layers)
    same = [list(group) for _, group in itertools.groupby(kept, lambda index: owners[index])]
    runs = tuple(LayerRun(use=names[group[0]], repeat=len(group), shared=len(group) > 1) for group in same)
    used = {run.use for run in runs}
    blocks = {name: block for name, block in stack.blocks.items() if name in used}
    queries = stack.queries
    if queries is not None:
        passed = sum(layer >= stack.depth - queries.layers for layer in kept)
        queries = queries.model_copy(update={"layers": passed})
    return stack.model_copy(update={"layers": runs, "blocks": blocks, "queries": queries})


def _divided(width: int, divisor: int) -> int:
    smaller = max(width // divisor, min(width, 8))
    return smaller + (smaller % 2 if width % 2 == 0 else 0)
