"""Smaller specs that stand in for one too large to run: fewer layers or experts, or narrower ones, wired alike."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from specs.base import Component
from specs.embedding import Patches
from specs.head import AtToken, sought_token
from specs.model import Expectation, Model
from specs.stack import LayerRun, Stack

WIDTHS = (
    "d_model", "hidden", "width", "head_dim", "dimensions", "query_rank", "kv_rank", "rope_dim", "value_dim",
)  # fmt: skip
SMALL_VOCABULARY = 1024
SMALL_CONTEXT = 1024
SMALL_SIDE, SMALL_SOUND = 3, 24
SMALL_LIMITS = {"window": 4, "softcap": 2.0, "clip": 1.0}
SMALL_BORDER = 16


def twins(spec: Model) -> Iterator[tuple[Model, str]]:
    """Ever smaller stand-ins for a spec, each with what it is."""
    smaller = twin(spec)
    depths = {name: (stack.depth, getattr(smaller, name).depth) for name, stack in spec.stacks()}
    shortened = " and ".join(f"{kept} of {depth} {name} layers" for name, (depth, kept) in depths.items())
    description = f"a twin of {shortened}"
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


def twin(spec: Model, layers: int = 2) -> Model:
    """The same model with at most ``layers`` layers in each stack, or as many as it has kinds of blocks.

    Every block in use occurs, in the order of the original, and the first and the last layer are its own.
    """
    stacks: dict[str, Stack] = {name: _shortened(stack, layers) for name, stack in spec.stacks()}
    return spec.model_copy(update={**stacks, "expect": Expectation()})


def kept_layers(stack: Stack, layers: int) -> list[int]:
    """The indices of the layers that a twin keeps."""
    names = stack.block_names()
    first_use = {name: index for index, name in reversed(list(enumerate(names)))}
    first_use[names[-1]] = len(names) - 1
    kept = set(first_use.values())
    others = (index for index in range(len(names)) if index not in kept)
    return sorted([*kept, *(index for index, _ in zip(others, range(layers - len(kept)), strict=False))])


def small_tables(spec: Model) -> Model:
    """The same model with a vocabulary and a context of at most 1024."""
    vocabulary = _at_most(spec.vocab_size, SMALL_VOCABULARY)
    sizes = {
        "vocab_size": vocabulary,
        "context_length": _at_most(spec.context_length, SMALL_CONTEXT),
        "head": _seeking_below(spec.head, vocabulary or 0),
    }
    stacks: dict[str, Stack] = {
        name: stack.model_copy(update={"context_length": _at_most(stack.context_length, SMALL_CONTEXT)})
        for name, stack in spec.stacks()
    }
    return spec.model_copy(update={**sizes, **stacks, "expect": Expectation()})


def small_inputs(spec: Model) -> Model:
    """The same model for images of at most 3 x 3 patches and sounds of at most 24 vectors; tokens stay as they are."""
    stacks: dict[str, Stack] = {}
    for name, stack in spec.stacks():
        embedding = spec.embedding_of(stack)
        if isinstance(embedding, Patches):
            size = min(embedding.image_size, SMALL_SIDE * embedding.patch_size)
            smaller = embedding.model_copy(update={"image_size": size})
            stacks[name] = stack.model_copy(update={"embedding": smaller})
        elif not embedding.takes_tokens:
            context = _at_most(spec.context_length_of(stack), SMALL_SOUND)
            stacks[name] = stack.model_copy(update={"context_length": context})
    return spec.model_copy(update={**stacks, "expect": Expectation()}) if stacks else spec


def _at_most(size: int | None, limit: int) -> int | None:
    return None if size is None else min(size, limit)


def small_limits(spec: Model) -> Model:
    """The same model with windows, soft caps and clips so small that a few tokens of ordinary size meet them."""
    data = spec.model_dump(exclude={"expect"})
    _limit(data)
    return Model.model_validate(data)


def _limit(data: Any) -> None:
    if isinstance(data, list | tuple):
        for item in data:
            _limit(item)
    if not isinstance(data, dict):
        return
    for value in data.values():
        _limit(value)
    for key, most in SMALL_LIMITS.items():
        if isinstance(data.get(key), int | float):
            data[key] = min(data[key], most)


def narrowed(spec: Model, divisor: int) -> Model:
    """The same model with its widths divided by ``divisor``, and as many heads, each narrower.

    Raises :class:`pydantic.ValidationError` where a kind does not allow the smaller widths.
    """
    data = spec.model_dump(exclude={"expect"})
    _narrow(data, spec.d_model, divisor)
    return Model.model_validate(data)


def fewer_experts(spec: Model) -> Model:
    """The same model with no more experts than show how they are chosen: some are passed over, and some groups."""
    data = spec.model_dump(exclude={"expect"})
    _drop_experts(data)
    return Model.model_validate(data)


def _seeking_below(head: Component, vocabulary: int) -> Component:
    """A head that seeks a token of a smaller vocabulary, where it seeks one."""
    token = sought_token(head)
    if token is None or token < vocabulary:
        return head
    return head.model_copy(update={"pooling": AtToken(token=vocabulary - 1)})


def short_borders(spec: Model) -> Model:
    """The same model with rotary frequencies that change at 16 tokens, where they change at some length."""
    data = spec.model_dump(exclude={"expect"})
    _shorten_borders(data)
    return Model.model_validate(data)


def _shortened(stack: Stack, layers: int) -> Stack:
    names, owners = stack.block_names(), stack.owners()
    kept = kept_layers(stack, layers)
    same = [list(group) for _, group in itertools.groupby(kept, lambda index: owners[index])]
    runs = tuple(LayerRun(use=names[group[0]], repeat=len(group), shared=len(group) > 1) for group in same)
    used = {run.use for run in runs}
    blocks = {name: block for name, block in stack.blocks.items() if name in used}
    return stack.model_copy(update={"layers": runs, "blocks": blocks})


def _narrow(data: Any, d_model: int, divisor: int) -> None:
    """Divide the widths of plain spec data in place, even ones into even ones."""
    if isinstance(data, list | tuple):
        for item in data:
            _narrow(item, d_model, divisor)
    if not isinstance(data, dict):
        return
    for value in data.values():
        _narrow(value, d_model, divisor)
    if "heads" in data:
        data["head_dim"] = data.get("head_dim") or d_model // data["heads"]
    for key in WIDTHS:
        if isinstance(data.get(key), int):
            data[key] = _divided(data[key], divisor)
    for key in ("short_factor", "long_factor"):
        if isinstance(data.get(key), list | tuple):  # one number per pair of dimensions
            data[key] = data[key][: _divided(2 * len(data[key]), divisor) // 2]


def _shorten_borders(data: Any) -> None:
    """Lower the lengths at which frequencies change of plain spec data in place."""
    if isinstance(data, list | tuple):
        for item in data:
            _shorten_borders(item)
    if not isinstance(data, dict):
        return
    for value in data.values():
        _shorten_borders(value)
    if data.get("kind") in ("dynamic_ntk", "longrope"):
        data["original_context_length"] = min(data["original_context_length"], SMALL_BORDER)


def _drop_experts(data: Any) -> None:
    """Lower the numbers of experts of plain spec data in place."""
    if isinstance(data, list | tuple):
        for item in data:
            _drop_experts(item)
    if not isinstance(data, dict):
        return
    for value in data.values():
        _drop_experts(value)
    if data.get("kind") == "mixture":
        top_k, groups = data["top_k"], data["router"]["groups"] or {"count": 1, "top": 1, "best": 1}
        size = max(top_k // groups["top"] + 1, groups["best"], -(-2 * top_k // groups["count"]))
        data["experts"] = min(data["experts"], groups["count"] * size)


def _divided(width: int, divisor: int) -> int:
    smaller = max(width // divisor, min(width, 8))
    return smaller + (smaller % 2 if width % 2 == 0 else 0)
