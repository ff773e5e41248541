"""Calibration of the scales of cached keys and values on representative inputs, by search.

Each channel of each head gets the scale with the least squared error over all tokens, weighted by the effect of the
error on the attention output; clipping the largest values costs less than coarse steps for all. Keys are taken as
cached, after rotation. Shapes: batch B, heads H, key-value heads G, query tokens T, key tokens S, tokens of all rows
N, head width K.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import torch
from torch import Tensor

from exporters.graph.quantization.cache_scales import Scales
from exporters.graph.quantization.cache_scheme import CacheFormat
from exporters.quality.quality_inputs import QualityInputs
from exporters.rounding.calibration import calibration_batch, pass_over
from exporters.rounding.quantized_cache.check import no_inputs
from exporters.rounding.streaming import Rows, calibrate
from exporters.verification.cases import Case, cases
from exporters.verification.quantized_cache.attending import (
    CachedAttention,
    CachedAttentions,
    attention_paths,
)
from specs.model.model import Model
from zoo import functional
from zoo.builder import ZooModel, assemble
from zoo.core.progress import Progress, Stage
from zoo.weights.source import WeightSource

EXAMPLES = 16
"""The number of calibration windows: with half as many, SmolLM2's int8 cache loses twice as much, by clipping."""

SHARES = tuple(0.3 + 0.035 * step for step in range(21))
"""The candidate scales: the largest code stands for one of these shares of a channel's largest value."""

LEAST = 1e-8
"""The lower bound of a channel's largest value: a channel of zeros needs a scale, too."""


def random_case(spec: Model) -> Case:
    """Random inputs for random weights, to which no input means more than another."""
    return max(cases(spec, "right"), key=lambda case: 0 if case.pieces else case.batch.inputs.numel())


def calibration_case(
    spec: Model, inputs: QualityInputs, model: ZooModel | None, progress: Progress
) -> tuple[QualityInputs, Case]:
    """The calibration inputs as one batch, and the inputs; ``model`` generates missing ones, if it fits in memory.

    Raises :class:`specs.base.errors.UserError` where there are none.
    """
    if inputs.unjudged:
        raise no_inputs(inputs.unjudged)
    if model is None and inputs.representative is None:
        raise no_inputs("no text was given, and the model does not fit in memory to generate any")
    inputs = inputs.written_by(model, progress)
    assert inputs.representative is not None
    examples = inputs.representative.calibration or inputs.representative.judged
    some = examples[:: -(-len(examples) // EXAMPLES)]
    return inputs, calibration_batch(spec, some)


def calibrated_scales(
    cache: CacheFormat, spec: Model, source: WeightSource, case: Case, progress: Progress
) -> Scales:
    """The scales of every attention with a cache, by its path, from the keys and values of ``source`` in a case.

    Weights are read layer by layer.
    """
    progress(Stage(f"calibrate the {cache.name} cache"))
    assert case.batch.mask is not None
    real, model = case.batch.mask == 1, assemble(spec)  # B N
    seen: dict[str, list[tuple[Tensor, ...]]] = {}
    scales: dict[str, tuple[Tensor, Tensor]] = {}
    left = Counter(attention_paths(model).values())

    def take(call: CachedAttention) -> tuple[Tensor, Tensor]:
        parts = (call.key, call.value, *importances(call))
        seen.setdefault(call.path, []).append(tuple(part.transpose(1, 2)[real] for part in parts))
        left[call.path] -= 1
        if not left[call.path]:  # layers may share a block
            keys, values, *weights = map(torch.cat, zip(*seen.pop(call.path), strict=True))
            scales[call.path] = searched(cache, keys, weights[0]), searched(cache, values, weights[1])
        return call.key, call.value

    def run(model: ZooModel, rows: Rows) -> None:
        with CachedAttentions(model, take):
            pass_over(case)(model, rows)

    calibrate(model, source, {}, run, Path(), lambda done, count: None)
    return scales


def importances(call: CachedAttention) -> tuple[Tensor, Tensor]:
    """The squared effect of errors of each key and each value on the attention output: B G S each.

    The output o of a query is the sum of p_s v_s. An error of v_s changes it by p_s times that error, an error of the
    score of k_s by p_s (v_s - o) times that one.
    """
    options = {name: option for name, option in call.options.items() if name != "dropout"}
    groups = call.key.shape[1]
    of_keys, of_values = [], []
    for row in range(len(call.key)):
        query, key, value = (part[row : row + 1] for part in (call.query, call.key, call.value))
        bias = None if call.bias is None else call.bias[row % len(call.bias)][None]
        weights = functional.attention_weights(query, key, bias, **options)[0, ..., : key.shape[2]]
        squares = weights.square().unflatten(0, (groups, -1))  # G H/G T S
        output = weights.unflatten(0, (groups, -1)) @ value[0][:, None]  # G H/G T K
        lengths = value[0].square().sum(-1)[:, None, None]  # G 1 1 S
        distances = lengths - 2 * output @ value[0][:, None].mT + output.square().sum(-1, keepdim=True)
        of_keys.append((squares * distances).sum((1, 2)))
        of_values.append(squares.sum((1, 2)))
    return torch.stack(of_keys), torch.stack(of_values)


def searched(cache: CacheFormat, values: Tensor, weights: Tensor) -> Tensor:
    """The scale of each channel with the least weighted squared error: N G K and weights N G -> G 1 K."""
    heads, weights = values.transpose(0, 1).contiguous(), weights.transpose(0, 1)[..., None]  # G N K, G N 1
    largest = heads.abs().amax(1, keepdim=True).clamp(min=LEAST) / cache.high
    best, least = largest, torch.full_like(largest, torch.inf)
    for share in SHARES:
        scale = largest * share
        error = ((cache.codes(heads, scale) * scale - heads).square() * weights).sum(1, keepdim=True)
        best, least = torch.where(error < least, scale, best), torch.minimum(error, least)
    return best
