"""Rounding the matrices of an export for representative inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from exporters.data.data_file import Region, contents
from exporters.graph.quantization.matrix import QuantizedMatrix
from exporters.graph.quantization.static_matrix import StaticMatrix
from exporters.quality.examples import DECODED, Example, joined, padded
from exporters.quality.judge import cases_of, input_batch
from exporters.quality.pairs import placeholder_of
from exporters.quality.quality_inputs import QualityInputs
from exporters.rounding.calibrated_weights import CalibratedWeights, Rounding
from exporters.rounding.streaming import Rows, Run, calibrate, round_to_nearest
from exporters.verification.cases import Batch, Case
from specs.base.errors import UserError, option_name
from specs.model.model import Model
from zoo.builder import assemble
from zoo.components.mixer import State
from zoo.core.graph_names import GRID
from zoo.core.progress import Progress, Stage
from zoo.models.dual_encoder import DualEncoder
from zoo.weights.source import WeightSource

LEAST_BITS = 8
"""The bits from which rounding to nearest is good enough, unless inputs have static scales."""


def roundings_of(regions: Mapping[str, Region], source: WeightSource) -> dict[str, Rounding]:
    """How to round the quantized weights of a data file, except those whose codes the source provides."""
    return {
        name: Rounding.of(content)
        for content in contents(regions.values())
        if isinstance(content, QuantizedMatrix)
        and (content.blocks.bits < LEAST_BITS or isinstance(content, StaticMatrix))
        for name in content.names
        if (codes := source.codes(name)) is None or codes.blocks != content.blocks
    }


def unwritten(inputs: QualityInputs, rounding: str | None) -> QualityInputs:
    """The inputs of an export whose model does not fit in memory to generate inputs: it is rounded to nearest.

    Raises :class:`specs.base.errors.UserError` where ``rounding`` asks for GPTQ.
    """
    if rounding == "gptq":
        raise UserError(
            f"{option_name('rounding')} gptq needs {inputs.spec.name} itself in memory, to generate the inputs of its decoder\n"
            f"  value: the model does not fit\n  Use a larger machine, or pass {option_name('rounding')} nearest."
        )
    return replace(inputs, unjudged="the model itself does not fit in memory")


def rounded_for(
    spec: Model,
    source: WeightSource,
    roundings: Mapping[str, Rounding],
    examples: Sequence[Example],
    directory: Path,
    progress: Progress,
) -> CalibratedWeights:
    """The weights of a model with chosen codes for some matrices, kept in ``directory`` while in use.

    The examples of an encoder-decoder include the inputs of its decoder. Raises :class:`specs.base.errors.UserError` where
    a layer with static scales was not reached.
    """

    def report(done: int, count: int) -> None:
        progress(Stage(f"round weights: {done} of {count} matrices"))

    calibrated = calibrate(
        assemble(spec), source, roundings, pass_over(calibration_batch(spec, examples)), directory, report
    )
    for name, rounding in roundings.items():
        if rounding.inputs is not None and calibrated.input_scales(rounding.names) is None:
            raise UserError(
                f"{option_name('activations')} static needs layers that run on every input\n"
                f"  value: {name}, which calibration did not reach\n  Pass {option_name('activations')} dynamic."
            )
    return calibrated


def rounded_to_nearest(
    spec: Model,
    source: WeightSource,
    roundings: Mapping[str, Rounding],
    directory: Path,
    progress: Progress,
) -> CalibratedWeights:
    """The weights of a model without calibration inputs: the nearest codes for scales of least error, kept in ``directory``."""
    weights = CalibratedWeights(source, directory)

    def report(done: int) -> None:
        progress(Stage(f"round weights: {done} of {len(roundings)} matrices"))

    round_to_nearest(assemble(spec), weights, roundings, report)
    return weights


def pass_over(case: Case) -> Run:
    """One pass over a case; over images before texts, and for an encoder-decoder first the encoder, then the decoder, which projects the encoder
    output layer by layer."""

    def run(model: Any, rows: Rows) -> None:
        batch, source = case.batch, case.encoder
        rows(_tokens(batch if source is None else source))
        if source is None:
            model(batch.inputs, batch.mask, token_type_ids=batch.types, **batch.beside)
            return
        if not case.reads_encoder:
            _pass_over_images(model, case, source, rows)
            return
        hidden = model.encoder_output(source.inputs, source.mask, source.types)
        encoded = _Projected(model.decoder.blocks, hidden, _tokens(source), _tokens(batch), rows)
        model.decode(batch.inputs, encoded, source.mask)

    return run


def _pass_over_images(model: Any, case: Case, images: Batch, rows: Rows) -> None:
    """One pass over images, and then over the texts beside them or with them."""
    texts = case.batch
    if isinstance(model, DualEncoder):
        model.vector("image", images.inputs)
        rows(_tokens(texts))
        model.vector("text", texts.inputs, texts.mask, texts.types)
        return
    begins = model.decoder.register_forward_pre_hook(lambda module, args: rows(_tokens(texts)))
    try:
        seen = {"pixel_values": images.inputs} if len(images.inputs) else {}
        seen |= {} if images.grids is None else {GRID: images.grids}
        model(texts.inputs, texts.mask, token_type_ids=texts.types, **seen)
    finally:
        begins.remove()


class _Projected(Sequence[State]):
    """The keys and values of an encoder's output for each layer of a decoder, computed on access and not kept."""

    def __init__(
        self, blocks: Sequence[Any], hidden: Tensor, source: Tensor | None, target: Tensor | None, rows: Rows
    ) -> None:
        self._blocks, self._hidden, self._rows = blocks, hidden, rows
        self._source, self._target = source, target

    def __len__(self) -> int:
        return len(self._blocks)

    def __getitem__(self, layer: Any) -> Any:
        self._rows(self._source)
        keys_values = self._blocks[layer].cross_attention.keys_values(self._hidden)
        self._rows(self._target)
        return keys_values


def _tokens(batch: Batch) -> Tensor | None:
    return None if batch.real is None else batch.real == 1


def calibration_batch(spec: Model, examples: Sequence[Example]) -> Case:
    """Examples as one batch, padded on the right: each layer must see all of its inputs at once."""
    if spec.architecture != "encoder-decoder":
        padding = int(placeholder_of(spec) == 0)  # another token than that of images
        (case,) = cases_of(spec, [joined(examples, padding)])
        return case
    batch = input_batch(spec, joined(examples))
    rows = [example[DECODED] for example in examples]
    ids, mask = padded(rows), padded([torch.ones_like(row) for row in rows])
    return Case("calibration", Batch("input_ids", ids, mask, torch.zeros_like(ids)), encoder=batch)
