"""Every parameter must get a gradient: one that gets none is not used, and would not be trained."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from specs.embedding import Tokens
from specs.model import Model
from zoo.builder import ZooModel
from zoo.checks.degenerate import may_fade, why_deaf
from zoo.checks.result import Check, skipped
from zoo.checks.side import LENGTH, draw_ids, draw_inputs
from zoo.checks.subject import Subject
from zoo.components.attention import Projections, SelfAttention
from zoo.models.encoder import Encoder
from zoo.models.encoder_decoder import EncoderDecoder
from zoo.models.outputs import Outputs
from zoo.models.stack import Stack

_NEGLIGIBLE = 1e-12
"""Of the largest gradient nearby: what rounding leaves of a gradient that is 0."""

_SHOWN = 8


def gradients(subject: Subject) -> Check:
    """Whether every parameter gets a gradient that is finite and not all 0."""
    explanation = "every parameter gets a finite gradient, not all 0, from a random weighting of all outputs"
    spec = subject.spec
    lengths = [spec.context_length_of(stack) or LENGTH for _, stack in spec.stacks()]
    reason = why_deaf(spec) or ("context_length allows one token" if min(lengths) < 2 else "")
    if reason:
        return skipped("gradients", explanation, reason)
    model = subject.model
    names = list(_trained(model))
    optional = _shift_all_scores(model)
    idle = _score_one_key(model)
    without: set[str] = set(names) - optional - idle
    for _ in subject.draws():
        without &= _without_gradient(model, spec)
        if not without:
            break
    reason = may_fade(spec)
    if without and reason:
        return skipped("gradients", explanation, reason)
    if optional:
        explanation += " (but key biases may get none: they shift all scores of a query alike)"
    if idle:
        explanation += " (but queries, keys and distances of windows of one token get none)"
    listed = sorted(without, key=names.index)
    reason = f"none for {', '.join(listed[:_SHOWN])}" if listed else ""
    reason += f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    figure, expected = float(len(listed)), f"0 of {len(names)} parameters without"
    return Check("gradients", "failed" if listed else "passed", explanation, figure, expected, reason)


def _shift_all_scores(model: ZooModel) -> set[str]:
    """The biases of keys and of their norms: where positions do not act on keys, softmax takes no notice of them."""
    paths = [path for path, module in model.named_modules() if isinstance(module, Projections)]
    return {f"{path}.{part}.bias" for path in paths for part in ("key", "key_norm")} & _trained(model).keys()


def _score_one_key(model: ZooModel) -> set[str]:
    """The parameters of queries, keys and their distances where a window holds one token: its share is 1 at any score."""
    attentions = {path: each for path, each in model.named_modules() if isinstance(each, SelfAttention)}
    single = [path for path, each in attentions.items() if each.window == 1 and each.sinks is None]
    parts = [f"{path}.{part}." for path in single for part in ("query", "key", "query_norm", "key_norm")]
    positions = _positions_in_attention(model)
    others = {id(positions[path]) for path in attentions.keys() - set(single)}
    idle = {id(positions[path]) for path in single} - others
    distances = [f"{path}." for path, each in model.named_modules() if id(each) in idle]
    prefixes = (*parts, *distances)
    return {name for name in _trained(model) if prefixes and name.startswith(prefixes)}


def _positions_in_attention(model: ZooModel) -> dict[str, nn.Module]:
    """The position that acts on the scores of each self-attention, by its path: its own, or its stack's."""
    stacks = {path: each for path, each in model.named_modules() if isinstance(each, Stack)}
    return {
        f"{path}.{inner}": each.position or stack.position
        for path, stack in stacks.items()
        for inner, each in stack.named_modules()
        if isinstance(each, SelfAttention)
    }


def _without_gradient(model: ZooModel, spec: Model) -> set[str]:
    """The names of the parameters whose gradient is missing, not finite, or negligible beside its neighbours'."""
    with _largest_gradients(model) as largest:
        outputs = _run(model, spec)
        generator = torch.Generator().manual_seed(0)
        weighted = [
            (output * torch.randn(output.shape, generator=generator, dtype=output.dtype)).sum()
            for output in outputs.values()
        ]
        torch.stack(weighted).sum().backward()
    nearby: dict[str, float] = {}
    for name, size in largest.items():
        nearby[_place(name)] = max(nearby.get(_place(name), 0.0), size)
    enough = {
        name
        for name, size in largest.items()
        if math.isfinite(size) and size > _NEGLIGIBLE * nearby[_place(name)]
    }
    return _trained(model).keys() - enough


def _trained(model: ZooModel) -> dict[str, Tensor]:
    """The parameters that training changes."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def _place(name: str) -> str:
    """The part of the model around the module of a parameter."""
    return name.rpartition(".")[0].rpartition(".")[0]


def _run(model: ZooModel, spec: Model) -> Outputs:
    if isinstance(model, EncoderDecoder):
        return model(draw_inputs(spec, "encoder", 2, 1), draw_inputs(spec, "decoder", 2))
    inputs = draw_inputs(spec, "encoder" if isinstance(model, Encoder) else "decoder", 2)
    embedding = spec.embedding_of(spec.last_stack)
    kinds = embedding.token_types if isinstance(embedding, Tokens) else 0
    return model(inputs, token_type_ids=draw_ids(2, inputs.shape[1], kinds) if kinds else None)


@contextmanager
def _largest_gradients(model: ZooModel) -> Iterator[dict[str, float]]:
    """The largest absolute gradient of each parameter that gets one; the gradients themselves are let go at once."""
    largest: dict[str, float] = {}

    def keep(name: str, parameter: Tensor) -> None:
        assert parameter.grad is not None
        lowest, highest = parameter.grad.aminmax()
        largest[name] = float(torch.maximum(-lowest, highest))
        parameter.grad = None

    hooks = [
        parameter.register_post_accumulate_grad_hook(lambda p, name=name: keep(name, p))
        for name, parameter in _trained(model).items()
    ]
    try:
        yield largest
    finally:
        for hook in hooks:
            hook.remove()
