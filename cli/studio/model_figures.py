"""The figures of one spec, each computed once: what the commands params, report, diff and draw compute."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import Any

import torch

from cli.studio.readings import Reading, Readings
from specs.base.errors import UserError
from specs.files.device import Device, FloatPrecision, device_names, load_device
from specs.forms.likeness import Features, features
from specs.language.load import load
from specs.model.model import Model
from zoo.drawing import draw_svg
from zoo.pages.treemap import treemap_root
from zoo.reports.folding import Folded
from zoo.reports.lengths import Lengths
from zoo.reports.memory import DTYPES
from zoo.reports.parameters import ParameterReport, folded_report
from zoo.reports.quantities import Measured
from zoo.reports.report import Report
from zoo.reports.report import report as report_on
from zoo.reports.roofline import COMPUTED_IN
from zoo.reports.training import traced_dtype

_ABOUT = {"summary", "source", "year", "expect"}
"""Keys that change no figure."""

_Asked = tuple[Any, ...]
"""A reading's name and its arguments after the spec."""

_KEPT = 48
"""The number of specs whose figures are kept: the base, and those that undo leads back to."""


class ModelFigures:
    """The figures of a spec.  Expected counts are those of the spec itself, so they are not among them."""

    def __init__(self, spec: Model, readings: Readings, *devices: Device) -> None:
        self.spec, self.devices = spec, devices
        self._readings = readings
        self._begun: dict[_Asked, Reading] = {}
        self._read: dict[_Asked, Any] = {}
        self._by_dtype: dict[FloatPrecision, Report] = {}

    def begin(self, precision: str) -> None:
        """Begin the readings behind the figures: sizes lower the trace of costs, and this process trains meanwhile."""
        self._begin("costs")
        self._begin("sizes")
        self._begin("training", self._trained_in(COMPUTED_IN.get(precision, "fp16")))

    def drop(self) -> None:
        """Leave out the readings that nobody has begun."""
        for reading in self._begun.values():
            reading.drop()
        self._begun.clear()

    def _begin(self, *asked: Any) -> None:
        if asked not in self._read and asked not in self._begun:
            self._begun[asked] = self._readings.begin(self.spec, *asked)

    def _reading(self, *asked: Any) -> Any:
        """The result of a reading, begun or not."""
        if asked not in self._read:
            self._begin(*asked)
            self._read[asked] = self._begun.pop(asked).result()
        return self._read[asked]

    @cached_property
    def _report(self) -> Report:
        return replace(report_on(self.spec, Lengths.of(self.spec), "fp16"), devices=self.devices)

    @cached_property
    def _costed(self) -> Report:
        """The report with costs, which are traced once for all sizes."""
        return self._report.knowing(costs=self._reading("costs"))

    @property
    def folded(self) -> Folded:
        """The model with equal layers built once."""
        return self._report.folded

    @cached_property
    def parameters(self) -> ParameterReport:
        """The parameters by module."""
        return folded_report(self.folded)

    @cached_property
    def measured(self) -> Measured:
        """The costs to compare with another model's."""
        return Measured(self.spec, self.folded, self.parameters, self._costed.costs.stages)

    @cached_property
    def drawing(self) -> str:
        """The drawing as SVG."""
        return draw_svg(self.spec, self.folded)

    @cached_property
    def treemap(self) -> dict[str, Any]:
        """The root of the treemap."""
        return treemap_root(self.folded)

    @property
    def sizes(self) -> Mapping[str, int]:
        """Bytes of the data file by precision; empty for a model that cannot be exported."""
        sizes: Mapping[str, int] = self._reading("sizes")
        return sizes

    @cached_property
    def features(self) -> Features:
        """The features that likeness to other specs is computed from."""
        return features(self.spec)

    @property
    def precisions(self) -> list[str]:
        """The precisions in which the weights can be stored."""
        return list(COMPUTED_IN) if self.sizes else list(self._report.weights)

    def computed(self, lengths: Lengths, precision: str) -> Report:
        """The report at some sizes, computed as with weights in a precision, whose stored size it need not know."""
        if precision not in COMPUTED_IN:
            raise UserError(f"{precision} is no precision.\n  Use {', '.join(COMPUTED_IN)}.")
        dtype = COMPUTED_IN[precision]
        base = self._in_dtype(dtype) if self.spec.decodes else self._trained(dtype)
        return base.at(lengths, dtype, self._report.weights)

    def _in_dtype(self, dtype: FloatPrecision) -> Report:
        if dtype not in self._by_dtype:
            costed = self._costed
            self._by_dtype[dtype] = costed.at(costed.lengths, dtype, costed.weights)
        return self._by_dtype[dtype]

    def _trained(self, dtype: FloatPrecision) -> Report:
        """The report in a dtype with the costs of a training step; an encoder's memory is found from it."""
        base = self._in_dtype(dtype)
        if "training" not in base.__dict__:
            step = self._reading("training", self._trained_in(dtype))[traced_dtype(base.dtype)]
            base = base.knowing(training=step)
            self._by_dtype[dtype] = base
        return base

    def _trained_in(self, dtype: FloatPrecision) -> tuple[torch.dtype, ...]:
        """The dtypes in which a training step is read: the one asked for, or all for encoders, as memory on devices needs all."""
        dtypes = [dtype] if self.spec.decodes else DTYPES
        return tuple(dict.fromkeys(traced_dtype(DTYPES[name]) for name in dtypes))

    def report(self, lengths: Lengths, precision: str) -> Report:
        """The report at some sizes with weights in a precision, as ``zoo report`` prints it."""
        weights = {**self._report.weights, **self.sizes}
        if precision not in weights:
            raise UserError(f"{self.spec.name} cannot be stored in {precision}.\n  Use {', '.join(weights)}.")
        return self.computed(lengths, precision).at(lengths, precision, weights)

    def training(self, lengths: Lengths, precision: str) -> Report:
        """The report at some sizes with the costs of a training step."""
        self.computed(lengths, precision)  # which refuses a wrong precision
        base = self._trained(COMPUTED_IN[precision])
        _ = base.state
        return self.computed(lengths, precision)


class FigureCache:
    """The figures of the specs that were asked for last."""

    def __init__(self, readings: Readings, *devices: Device) -> None:
        """``devices``: beside the built-in ones."""
        self.readings, self.devices = readings, (*map(load_device, device_names()), *devices)
        self._kept: OrderedDict[str, ModelFigures] = OrderedDict()
        self._presets: dict[str, Model] = {}
        self._lock = Lock()

    def of_preset(self, name: str) -> ModelFigures:
        """The figures of a preset, which is read once: it is the base of one edit after the other."""
        if name not in self._presets:
            self._presets = {name: load(name)}
        return self.of(self._presets[name])

    def of(self, spec: Model) -> ModelFigures:
        """The figures of a spec, shared by all equal specs."""
        key = json.dumps(spec.model_dump(mode="json", exclude=_ABOUT), sort_keys=True)
        with self._lock:
            figures = self._kept.pop(key, None) or ModelFigures(spec, self.readings, *self.devices)
            self._kept[key] = figures
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return figures
