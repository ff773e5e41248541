"""Rounding the matrices of an export for the inputs that they will see, where such inputs are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from exporters.cases import Batch, Case
from exporters.data_file import Region, contents
from exporters.quality.claim import Claim
from exporters.quality.examples import DECODED, Example, joined, padded
from exporters.quality.judge import input_batch
from exporters.quantization.matrix import QuantizedMatrix
from exporters.quantization.static_matrix import StaticMatrix
from exporters.rounding.calibrated_weights import CalibratedWeights, Rounding
from exporters.rounding.streaming import Rows, Run, calibrate
from specs.errors import UserError, option_name
from specs.model import Model
from zoo.builder import assemble
from zoo.components.attention import KeyValue
from zoo.progress import Progress, Stage
from zoo.weights.source import WeightSource

LEAST_BITS = 8
"""Nearest is good enough from here on, unless inputs are rounded with static scales, too."""


def roundings_of(regions: Mapping[str, Region], source: WeightSource) -> dict[str, Rounding]:
    """How the weights of a data file are to be rounded that have few bits, but for those whose codes the source has."""
    return {
        name: Rounding.of(content)
        for content in contents(regions.values())
        if isinstance(content, QuantizedMatrix)
        and (content.blocks.bits < LEAST_BITS or isinstance(content, StaticMatrix))
        for name in content.names
        if (codes := source.codes(name)) is None or codes.blocks != content.blocks
    }


def calibrated(source: WeightSource) -> Sequence[str]:
    """The names of the weights that a source has rounded for their inputs."""
    return source.calibrated if isinstance(source, CalibratedWeights) else ()


def unwritten(claim: Claim, rounding: str | None) -> Claim:
    """The claim of an export whose model cannot write what it reads: it does not fit in memory, and rounds to nearest.

    Raises :class:`specs.errors.UserError` where ``rounding`` asks for GPTQ.
    """
    if rounding == "gptq":
        raise UserError(
            f"{option_name('rounding')} gptq needs memory for {claim.spec.name} itself, which writes what its decoder reads\n"
            f"  value: the model does not fit\n  Use a larger machine, or pass {option_name('rounding')} nearest."
        )
    return replace(claim, unjudged="there is too little memory to run the model itself")


def rounded_for(
    spec: Model,
    source: WeightSource,
    roundings: Mapping[str, Rounding],
    examples: Sequence[Example],
    directory: Path,
    progress: Progress,
) -> CalibratedWeights:
    """The weights of a model with codes for some matrices; ``directory`` holds these while they are used.

    The examples of an encoder-decoder say what its decoder reads.  Raises :class:`specs.errors.UserError` where inputs of a
    layer that did not run are to have static scales.
    """

    def told(done: int, count: int) -> None:
        progress(Stage(f"round weights: {done} of {count} matrices"))

    found = calibrate(assemble(spec), source, roundings, pass_over(_case(spec, examples)), directory, told)
    for name, rounding in roundings.items():
        if rounding.inputs is not None and found.input_scales(rounding.names) is None:
            raise UserError(
                f"{option_name('activations')} static needs layers that run on every input\n"
                f"  value: {name}, which calibration did not reach\n  Pass {option_name('activations')} dynamic."
            )
    return found


def pass_over(case: Case) -> Run:
    """One pass over a case: of an encoder-decoder first the encoder, then the decoder, whose layers project what the
    encoder gives when their turn comes."""

    def run(model: Any, rows: Rows) -> None:
        batch, source = case.batch, case.encoder
        rows(_tokens(batch if source is None else source))
        if source is None:
            model(batch.inputs, batch.mask, token_type_ids=batch.types)
            return
        hidden = model.encoder_output(source.inputs, source.mask, source.types)
        encoded = _Projected(model.decoder.blocks, hidden, _tokens(source), _tokens(batch), rows)
        model.decode(batch.inputs, encoded, source.mask)

    return run


class _Projected(Sequence[KeyValue]):
    """The keys and values of an encoder's output for each layer of a decoder, made when they are looked at and not kept."""

    def __init__(
        self, blocks: Sequence[Any], hidden: Tensor, source: Tensor | None, target: Tensor | None, rows: Rows
    ) -> None:
        self._blocks, self._hidden, self._rows = blocks, hidden, rows
        self._source, self._target = source, target

    def __len__(self) -> int:
        return len(self._blocks)

    def __getitem__(self, layer: Any) -> Any:
        self._rows(self._source)
        found = self._blocks[layer].cross_attention.keys_values(self._hidden)
        self._rows(self._target)
        return found


def _tokens(batch: Batch) -> Tensor | None:
    return None if batch.mask is None else batch.mask == 1


def _case(spec: Model, examples: Sequence[Example]) -> Case:
    """Examples as one batch, padded on the right: whatever a layer sees has to come at once."""
    batch = input_batch(spec, joined(examples))
    if spec.architecture != "encoder-decoder":
        return Case("calibration", batch)
    rows = [example[DECODED] for example in examples]
    ids, mask = padded(rows), padded([torch.ones_like(row) for row in rows])
    return Case("calibration", Batch("input_ids", ids, mask, torch.zeros_like(ids)), encoder=batch)
