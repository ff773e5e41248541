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
from zoo.checks.stack_runner import LENGTH, draw_ids, draw_inputs, packed
from zoo.checks.subject import CheckedModel
from zoo.components.attention import Projections, SelfAttention
from zoo.components.attention_variations import VariedSelfAttention
from zoo.components.block_summaries import SummarizingAttention
from zoo.components.disentangled import Disentangled
from zoo.components.mixture import Mixture
from zoo.components.norm_placements import ReorderedNorm, Sandwich
from zoo.components.router import Router
from zoo.components.waveform import StemLayer, TimeNorm
from zoo.models.decoder import Decoder
from zoo.models.dual_encoder import DualEncoder
from zoo.models.encoder import Encoder
from zoo.models.encoder_decoder import EncoderDecoder
from zoo.models.outputs import Outputs
from zoo.models.stack import Stack
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
    optional = _shift_all_scores(model)
    idle = _score_one_key(model)
    constant = _route_alone(model)
    rescaled = _scale_a_whole_branch(model)
    centred = _centred_over_time(model)
    without: set[str] = set(names) - optional - idle - constant - rescaled - centred
    for _ in subject.draws():
        without &= _without_gradient(model, spec)
        if not without:
            break
    reason = may_fade(spec)
    if without and reason:
        return skipped("gradients", explanation, reason)
    if optional:
        explanation += " (except key biases, which shift all scores of a query equally)"
    if idle:
        explanation += " (except queries, keys and distances in windows of one token)"
    if constant:
        explanation += (
            " (except routers whose weights are constant: of one expert, or of sparse_mixer, which weighs an expert by 1 unless"
            " another scores nearly as high)"
        )
    if rescaled:
        explanation += " (except sinks of single heads, which scale an output that is normalized next)"
    if centred:
        explanation += " (except convolution biases before a norm over time, which subtracts them)"
    listed = sorted(without, key=names.index)
    reason = f"no gradient for {', '.join(listed[:_SHOWN])}" if listed else ""
    reason += f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    figure, expected = float(len(listed)), f"0 of {len(names)} parameters without a gradient"
    return Check("gradients", "failed" if listed else "passed", explanation, figure, expected, reason)


def _shift_all_scores(model: ZooModel) -> set[str]:
    """The biases of keys, of their norms, and of the norms of distances that stand for keys alone: softmax ignores them unless a
    position acts on keys."""
    paths = [path for path, module in model.named_modules() if isinstance(module, Projections)]
    biases = {f"{path}.{part}.bias" for path in paths for part in ("key", "key_norm")}
    for path, module in model.named_modules():
        if isinstance(module, Disentangled) and not module.to_content:
            biases.add(f"{path}.norm.bias")
    return biases & _trained(model).keys()


def _score_one_key(model: ZooModel) -> set[str]:
    """The parameters of queries, keys and their distances where a window holds one token, whose weight is 1 at any
    score."""
    attentions = {path: module for path, module in model.named_modules() if isinstance(module, SelfAttention)}
    single = [
        path
        for path, module in model.named_modules()
        if isinstance(module, VariedSelfAttention) and not isinstance(module, SummarizingAttention)
        if 1 in (module.window, module.patch_window) and module.sinks is None
    ]
    parts = [f"{path}.{part}." for path in single for part in ("query", "key", "query_norm", "key_norm")]
    positions = _positions_in_attention(model)
    others = {id(positions[path]) for path in attentions.keys() - set(single)}
    idle = {id(positions[path]) for path in single} - others
    distances = [f"{path}." for path, module in model.named_modules() if id(module) in idle]
    prefixes = (*parts, *distances)
    return {name for name in _trained(model) if prefixes and name.startswith(prefixes)}


def _route_alone(model: ZooModel) -> set[str]:
    """The parameters of routers whose weights are constant, at least where no two scores are close, and of their norms."""
    mixtures = {path: module.router for path, module in model.named_modules() if isinstance(module, Mixture)}
    constant = [path for path, router in mixtures.items() if _has_constant_weights(router)]
    parts = [
        f"{path}.{part}" for path in constant for part in ("router.weight", "router.bias", "router_norm.")
    ]
    return {name for name in _trained(model) if parts and name.startswith(tuple(parts))}


def _has_constant_weights(router: Router) -> bool:
    """Whether the weights of a router do not depend on its scores: a share of one number, or SparseMixer's."""
    alone = router.top_k == 1 and router.normalize
    only = len(router.weight) == 1 and router.function == "softmax"
    return alone or only or router.function == "sparse_mixer"


def _scale_a_whole_branch(model: ZooModel) -> set[str]:
    """The sinks of attentions with one head and no output bias, followed by a norm, which undoes any scale."""
    blocks = {
        path: module for path, module in model.named_modules() if isinstance(module, ReorderedNorm | Sandwich)
    }
    alone = [
        f"{path}.{branch}"
        for path, block in blocks.items()
        for branch in ("attention", "cross_attention")
        if isinstance(attention := dict(block.named_children()).get(branch), Projections)
        and attention.heads == 1
        and attention.output.bias is None
    ]
    return {f"{path}.sinks" for path in alone} & _trained(model).keys()


def _centred_over_time(model: ZooModel) -> set[str]:
    """The biases of convolutions followed by a norm of each channel over time: a constant is part of the mean."""
    stems = {path: module for path, module in model.named_modules() if isinstance(module, StemLayer)}
    centred = [path for path, stem in stems.items() if type(stem.norm) is TimeNorm]
    return {f"{path}.convolution.bias" for path in centred} & _trained(model).keys()


def _positions_in_attention(model: ZooModel) -> dict[str, nn.Module]:
    """The position that acts on the scores of each self-attention, by path: its own, or its stack's."""
    stacks = {path: module for path, module in model.named_modules() if isinstance(module, Stack)}
    return {
        f"{path}.{inner}": module.position or stack.position
        for path, stack in stacks.items()
        for inner, module in stack.named_modules()
        if isinstance(module, SelfAttention)
    }


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
    return model(inputs, token_type_ids=draw_ids(2, inputs.shape[1], kinds) if kinds else None)


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
