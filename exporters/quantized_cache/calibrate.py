"""Scales of cached keys and values from what a model caches on representative inputs, found by search.

Each channel of each head gets the scale with the least squared error over all tokens: clipping the largest
values costs less than coarse steps for all.  Keys are taken as they are cached, after rotation.

Shapes: batch B, key-value heads G, tokens N, head width K.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from exporters.cases import Case, cases
from exporters.graph import Graph
from exporters.quality.claim import Claim
from exporters.quality.judge import input_batch
from exporters.quantization.calibrated import calibrate
from exporters.quantized_cache.attending import CachedAttention, CachedAttentions, attention_paths
from exporters.quantized_cache.check import no_inputs
from exporters.quantized_cache.scales import Scales, fill, format_of
from exporters.quantized_cache.scheme import CacheFormat
from exporters.reference import full_pass
from exporters.rounding import joined
from specs.model import Model
from zoo.builder import ZooModel, assemble
from zoo.progress import Progress, Stage
from zoo.weights.source import WeightSource

SHARES = tuple(0.3 + 0.02 * step for step in range(36))
"""The largest code stands for one of these shares of a channel's largest value."""

LEAST = 1e-8
"""The largest value that a channel is taken to have at least: one that is always 0 needs a scale, too."""


def random_case(spec: Model) -> Case:
    """Random inputs for random weights, to which no input means more than another."""
    return max(cases(spec, "right"), key=lambda case: 0 if case.pieces else case.batch.inputs.numel())


def calibration_case(
    spec: Model, claim: Claim, model: ZooModel | None, progress: Progress
) -> tuple[Claim, Case]:
    """The inputs of a claim that calibrate, as one batch; ``model`` writes what was not read, where it fits in memory.

    Raises :class:`specs.errors.UserError` where there are none.
    """
    if claim.unjudged:
        raise no_inputs(claim.unjudged)
    if model is None and claim.inputs is None:
        raise no_inputs("no text was read, and the model is not in memory to write any")
    claim = claim.written_by(model, progress)
    assert claim.inputs is not None
    examples = claim.inputs.calibration or claim.inputs.judged
    return claim, Case("calibration", input_batch(spec, joined(spec, examples)))


def calibrate_caches(
    graphs: Sequence[Graph], spec: Model, source: WeightSource, case: Case, progress: Progress
) -> None:
    """Give graphs with a quantized cache its scales, from the keys and values of ``source`` in a case."""
    found = format_of(graphs)
    assert found is not None
    progress(Stage(f"calibrate the {found.name} cache"))
    fill(graphs, calibrated_scales(found, spec, source, case))


def calibrated_scales(cache: CacheFormat, spec: Model, source: WeightSource, case: Case) -> Scales:
    """The scales of every attention with a cache, by its path; weights are read layer by layer."""
    assert case.batch.mask is not None
    real, model = case.batch.mask == 1, assemble(spec)  # B N
    seen: dict[str, list[tuple[Tensor, Tensor]]] = {}
    found: dict[str, tuple[Tensor, Tensor]] = {}
    left = Counter(attention_paths(model))

    def take(call: CachedAttention) -> tuple[Tensor, Tensor]:
        pair = call.key.transpose(1, 2)[real], call.value.transpose(1, 2)[real]  # N G K
        seen.setdefault(call.path, []).append(pair)
        left[call.path] -= 1
        if not left[call.path]:  # layers may share a block
            keys, values = zip(*seen.pop(call.path), strict=True)
            found[call.path] = searched(cache, torch.cat(keys)), searched(cache, torch.cat(values))
        return call.key, call.value

    def run(model: ZooModel) -> None:
        with CachedAttentions(model, take):
            full_pass(model, case)

    calibrate(model, source, {}, run, Path(), lambda done, count: None)
    return found


def searched(cache: CacheFormat, values: Tensor) -> Tensor:
    """The scale of each channel with the least squared error: N G K -> G 1 K, float32."""
    heads = values.transpose(0, 1).contiguous()  # G N K
    largest = heads.abs().amax(1, keepdim=True).clamp(min=LEAST) / cache.high
    best, least = largest, torch.full_like(largest, torch.inf)
    for share in SHARES:
        scale = largest * share
        error = (cache.codes(heads, scale) * scale - heads).square().sum(1, keepdim=True)
        best, least = torch.where(error < least, scale, best), torch.minimum(error, least)
    return best
