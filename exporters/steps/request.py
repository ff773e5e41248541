"""The first stage of an export: what was asked for, checked before anything is computed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from exporters.graph.precisions import PRECISIONS
from exporters.steps.options import ExportOptions
from exporters.steps.preconditions import check_options
from exporters.target.targets import TARGETS
from exporters.verification.engines.check import check_installed
from exporters.verification.verified_model import COPIES, check_memory
from specs.base.errors import UserError, option_name
from specs.model.model import Model
from zoo.builder import ZooModel, assemble
from zoo.checkpoints.open_weights import open_weights
from zoo.core.tensors import weight_bytes, weight_count
from zoo.files.destination import check_destination
from zoo.weights.held import HeldWeights
from zoo.weights.source import WeightSource

if TYPE_CHECKING:
    from exporters.steps.adapters import NamedAdapter


@dataclass(frozen=True)
class Request:
    """A spec, the options of its export, and the source of its weights: None for the graph alone.

    ``model`` is on the meta device, in the dtype of unquantized tensors.
    """

    spec: Model
    options: ExportOptions
    model: ZooModel
    source: WeightSource | None
    adapters: tuple[NamedAdapter, ...] = ()

    @staticmethod
    def of_spec(spec: Model, options: ExportOptions, destination: Path) -> Request:
        """Check the options, the weights, the disk space and the memory.  Raises :class:`specs.base.errors.UserError`."""
        model = meta_model(spec, options)
        check_options(model, spec, options)
        check_installed(options.engines)
        source = None
        if options.weights != "none":
            source = open_weights(options.weights, model, spec, seed=options.seed)
        adapters: tuple[NamedAdapter, ...] = ()
        if options.adapters:
            from exporters.steps.adapters import read_adapters

            adapters = read_adapters(options, model, spec)
        if options.via == "torch":
            check_memory(
                f"{option_name('via')} torch",
                weight_bytes(model) * (1 + (COPIES if options.verify else 1)),
                f"export with {option_name('via')} fx",
            )
        least = PRECISIONS[options.precision].least_bytes(weight_count(model))
        check_destination(destination, 0 if source is None else least)
        return Request(spec, options, model, source, adapters)

    @staticmethod
    def of_module(module: ZooModel, options: ExportOptions) -> Request:
        """The export of a module with the weights that it holds.  Raises :class:`specs.base.errors.UserError`."""
        if next(module.parameters()).is_meta:
            raise UserError("This module has no weights\n  Build it with weights, or export its spec.")
        model = meta_model(module.spec, options)
        check_options(model, module.spec, options)
        return Request(module.spec, options, model, HeldWeights(module))


def meta_model(spec: Model, options: ExportOptions) -> ZooModel:
    """The model of a spec on the meta device, in the dtype of unquantized tensors."""
    return assemble(spec, PRECISIONS[options.precision].dtype_on(TARGETS[options.target]))
