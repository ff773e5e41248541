"""Every parameter must get a gradient: a parameter without one is unused and would not be trained."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from specs.model.model import Model
from zoo.builder import ZooModel
from zoo.checks.degenerate import may_fade, why_insensitive
from zoo.checks.result import Check, skipped
from zoo.checks.stack_runner import LENGTH, beside, draw_ids, draw_inputs, packed
from zoo.checks.subject import CheckedModel
from zoo.components.mixer import ONE_KEY
from zoo.core.gradients import without_gradient
from zoo.models.decoder import Decoder
from zoo.models.dual_encoder import DualEncoder
from zoo.models.encoder import Encoder
from zoo.models.encoder_decoder import EncoderDecoder
from zoo.models.outputs import Outputs
from zoo.models.stack import stacks_of
from zoo.models.vision_language import VisionLanguage

_NEGLIGIBLE = 1e-12
"""The threshold for a zero gradient, relative to the largest gradient nearby: rounding rarely leaves exact zeros."""

_SHOWN = 8


def gradients(subject: CheckedModel) -> Check:
    """Check that every parameter gets a finite gradient that is not all zeros."""
    explanation = "every parameter gets a finite, nonzero gradient from a random weighting of all outputs"
    spec = subject.spec
    lengths = [spec.context_length_of(stack) or LENGTH for _, stack in spec.stacks()]
    reason = why_insensitive(spec) or ("context_length allows only one token" if min(lengths) < 2 else "")
    if reason:
        return skipped("gradients", explanation, reason)
    model = subject.model
    names = list(_trained(model))
    by_design = _by_design(model)
    without: set[str] = {*names} - by_design.keys()
    for _ in subject.draws():
        without &= _without_gradient(model, spec)
        if not without:
            break
    reason = may_fade(spec)
    if without and reason:
        return skipped("gradients", explanation, reason)
    explanation += "".join(f" (except {reason})" for reason in dict.fromkeys(by_design.values()))
    listed = sorted(without, key=names.index)
    reason = f"no gradient for {', '.join(listed[:_SHOWN])}" if listed else ""
    reason += f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    figure, expected = float(len(listed)), f"0 of {len(names)} parameters without a gradient"
    return Check("gradients", "failed" if listed else "passed", explanation, figure, expected, reason)


def _by_design(model: ZooModel) -> dict[str, str]:
    """The reason for each parameter that gets no gradient by design: as modules state it, and positions of such attentions alone."""
    exempt = without_gradient(model)
    pairs = [
        (stack.position_of(attention), attention.scores_one_key)
        for stack in stacks_of(model).values()
        for attention in stack.attentions.values()
    ]
    idle = {position for position, alone in pairs if alone} - {
        position for position, alone in pairs if not alone
    }
    paths = [f"{path}." for path, module in model.named_modules() if module in idle]
    return exempt | {name: ONE_KEY for name in _trained(model) if paths and name.startswith(tuple(paths))}


def _without_gradient(model: ZooModel, spec: Model) -> set[str]:
    """The names of the parameters whose gradient is missing, not finite, or negligible compared with its neighbours'."""
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


@functools.singledispatch
def _run(model: nn.Module, spec: Model) -> Outputs:
    """The outputs of a model for random inputs."""
    raise TypeError(type(model))


@_run.register(Encoder)
@_run.register(Decoder)
def _(model: Encoder | Decoder, spec: Model) -> Outputs:
    inputs = draw_inputs(spec, spec.last_stack_name, 2)
    kinds = spec.embedding_of(spec.last_stack).segment_count
    types = draw_ids(2, inputs.shape[1], kinds) if kinds else None
    return model(inputs, token_type_ids=types, **beside(spec, inputs))


@_run.register
def _(model: EncoderDecoder, spec: Model) -> Outputs:
    return model(draw_inputs(spec, "encoder", 2, 1), draw_inputs(spec, "decoder", 2))


@_run.register
def _(model: DualEncoder, spec: Model) -> Outputs:
    return model(draw_inputs(spec, "text", 2), draw_inputs(spec, "image", 2, 1))


@_run.register
def _(model: VisionLanguage, spec: Model) -> Outputs:
    ids = draw_inputs(spec, "decoder", 2)
    images = draw_inputs(spec, "image", 2, 1)
    if spec.packs_images:
        pixels, grids = packed(images, spec)
        vectors = torch.full((2, images.shape[1] // model.square**2), model.placeholder)
        return model(torch.cat((vectors, ids), 1), pixel_values=pixels, image_grid_thw=grids)
    vectors = torch.full((2, spec.vectors_per_image), model.placeholder)
    return model(torch.cat((vectors, ids), 1), pixel_values=images)


@contextmanager
def _largest_gradients(model: ZooModel) -> Iterator[dict[str, float]]:
    """The largest absolute gradient of each parameter that gets one; gradients are released at once."""
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
