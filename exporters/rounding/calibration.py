"""Rounding the matrices of an export for the inputs that they will see, where such inputs are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F

from exporters.cases import Case
from exporters.data_file import Region, contents
from exporters.quality.inputs import Example
from exporters.quality.judge import input_batch
from exporters.quantization.matrix import QuantizedMatrix
from exporters.quantization.static_matrix import StaticMatrix
from exporters.reference import full_pass
from exporters.rounding.calibrated_weights import CalibratedWeights, Rounding
from exporters.rounding.streaming import calibrate
from specs.errors import UserError
from specs.model import Model
from zoo.builder import assemble
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


def rounded_for(
    spec: Model,
    source: WeightSource,
    roundings: Mapping[str, Rounding],
    examples: Sequence[Example],
    directory: Path,
    progress: Progress,
) -> CalibratedWeights:
    """The weights of an encoder or a decoder with codes for some matrices; ``directory`` holds these while they are used.

    Raises :class:`specs.errors.UserError` where inputs of a layer that did not run are to have static scales.
    """
    case = Case("calibration", input_batch(spec, joined(spec, examples)))

    def told(done: int, count: int) -> None:
        progress(Stage(f"round weights: {done} of {count} matrices"))

    found = calibrate(
        assemble(spec),
        source,
        roundings,
        lambda model: full_pass(model, case),
        directory,
        told,
        None if case.batch.mask is None else case.batch.mask == 1,
    )
    for name, rounding in roundings.items():
        if rounding.inputs is not None and found.input_scales(rounding.names) is None:
            raise UserError(
                "--activations static needs layers that run on every input\n"
                f"  value: {name}, which calibration did not reach\n  Pass --activations dynamic."
            )
    return found


def joined(spec: Model, examples: Sequence[Example]) -> Example:
    """Examples as one batch, padded on the right: whatever a layer sees has to come at once."""
    names = {*examples[0]} - {"attention_mask"}
    if "attention_mask" not in examples[0]:
        return {name: torch.cat([example[name] for example in examples]) for name in names}
    longest = max(example["attention_mask"].shape[1] for example in examples)
    return {
        name: torch.cat([F.pad(each[name], (0, longest - each[name].shape[1])) for each in examples])
        for name in (*names, "attention_mask")
    }
