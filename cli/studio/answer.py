"""The answer to one edit, part by part: what is quick to compute comes first, and an answer that is overtaken ends."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.studio.comparison import comparison
from cli.studio.memory_figures import cache_data, fitting, roofline_data, training_data
from cli.studio.model_figures import FigureCache, ModelFigures
from cli.studio.nearest import NearestPresets
from cli.studio.problems import problem_data
from cli.studio.readings import Readings
from cli.studio.typed_spec import TypedSpec
from specs.base.errors import UserError, with_flags
from specs.forms.canonical import distinct
from specs.language.catalog import presets
from specs.language.editing import spans
from specs.model.model import Model
from zoo.core.collector import collector_paused
from zoo.reports.devices import this_machine
from zoo.reports.lengths import Lengths
from zoo.reports.parameter_check import ParameterCheck
from zoo.reports.report import Report

Part = tuple[str, Any]

_SHOWN = {"drawing", "training", "devices", "nearest", "fault"}
"""The parts that are sent at once, with those before them: each time the page is laid out and painted."""

_COUNTED, _COSTED = 100, 16
"""The most kinds of layers whose parameters are counted, and whose costs are traced, while someone types; published models have at
most 6."""


@dataclass(frozen=True)
class Question:
    """An edit: the text, the base to compare with (a preset's name or a text of its own), and the sizes."""

    text: str
    base: str
    base_text: str
    batch: int
    length: int | None
    precision: str


class Answers:
    """Answers questions from one folder, with the figures of earlier specs at hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.nearest = NearestPresets()
        self.readings = Readings()
        self._figures = FigureCache(self.readings)
        self._published = {preset.name: (preset.parameters, preset.active_parameters) for preset in presets()}

    def measure(self) -> dict[str, Any]:
        """Measure this machine, which is a device from now on."""
        device = this_machine()
        self._figures = FigureCache(self.readings, device)
        return device.model_dump()

    def parts(self, question: Question, is_current: Callable[[], bool] = lambda: True) -> Iterator[Part]:
        """The parts of an answer by name.  A wrong text is answered by its problems alone.

        Garbage is left for later: collecting it takes as long as a tenth of an answer.
        """
        with collector_paused():
            yield from self._parts(question, is_current)

    def _parts(self, question: Question, is_current: Callable[[], bool]) -> Iterator[Part]:
        try:
            typed = TypedSpec.read(question.text, self.folder)
        except UserError as error:
            yield "problems", problem_data(question.text, error, self.folder)
            return
        shown: list[Part] = [("spec", self._spec(typed))]
        with closing(self._steps(typed, question)) as steps:
            while is_current():
                try:
                    step = next(steps, None)
                    if step is None:
                        return
                    shown += step()
                except UserError as error:  # such as sizes that the model does not take, which ends the steps
                    shown.append(("fault", {"message": with_flags(error.text)}))
                if shown[-1][0] in _SHOWN:
                    yield from shown
                    shown.clear()

    def _steps(
        self, typed: TypedSpec, question: Question
    ) -> Generator[Callable[[], Iterator[Part]], None, None]:
        """The steps of an answer: those first that need no trace, since other processes trace meanwhile."""
        figures, spec = self._figures.of(typed.model), typed.model
        base = self._base(question) or figures
        lengths, clamped = _lengths(spec, question)

        def costs() -> Iterator[Part]:
            report = figures.computed(lengths, question.precision)
            yield (
                "costs",
                {**_costs(report, question.precision), "clamped": clamped, "cache": cache_data(report, base)},
            )

        def training() -> Iterator[Part]:
            yield "training", training_data(figures.training(lengths, question.precision))

        def nearest() -> Iterator[Part]:
            yield "nearest", self.nearest.to(figures)

        def devices() -> Iterator[Part]:
            report = figures.report(lengths, question.precision)
            yield "devices", {**roofline_data(report), "fits": fitting(figures, lengths)}

        kinds = sum(len(distinct(stack.layer_blocks())) for _, stack in spec.stacks())
        if kinds > _COUNTED:
            raise UserError(_too_many(spec, kinds, "counts parameters of", _COUNTED, "params"))
        if kinds <= _COSTED:
            figures.begin(question.precision)
        try:
            yield lambda: iter([("counts", self._counts(typed, figures, question.base))])
            yield lambda: iter([("drawing", figures.drawing)])
            if kinds > _COSTED:
                raise UserError(_too_many(spec, kinds, "shows costs of", _COSTED, "report"))
            yield lambda: iter([("comparison", comparison(base, figures, question.batch, question.length))])
            yield costs
            yield training
            yield devices  # which needs the size of the files in each precision
            yield nearest  # which is no figure
        finally:
            figures.drop()

    def _spec(self, typed: TypedSpec) -> dict[str, Any]:
        spec = typed.model
        return {
            "name": spec.name,
            "architecture": spec.architecture,
            "full": spec.model_dump(mode="json"),
            "stated": typed.document.data,
            "context": spec.context_length_of(spec.last_stack),
            "fixed_length": not spec.embedding_of(spec.last_stack).any_length,
            "spans": [[list(path), *lines] for path, lines in spans(typed.text).items()],
        }

    def _base(self, question: Question) -> ModelFigures | None:
        """The figures to compare with; None if the base is no spec, such as a file that was opened with problems."""
        try:
            if question.base:
                return self._figures.of_preset(question.base)
            return self._figures.of(TypedSpec.read(question.base_text, self.folder).model)
        except UserError:
            return None

    def _counts(self, typed: TypedSpec, figures: ModelFigures, base: str) -> dict[str, Any]:
        report = figures.parameters
        total, active = self._published.get(base, (None, None))
        return {
            "parameters": report.total_parameters,
            "active": report.active_parameters,
            "embedding": report.embedding_parameters,
            "published": {"name": base, "parameters": total, "active": active},
            "expected": [check.as_dict() for check in _expected(typed.model, figures)],
            "treemap": figures.treemap,
        }


def _too_many(spec: Model, kinds: int, what: str, most: int, command: str) -> str:
    return f"{spec.name} has {kinds} kinds of layers; the page {what} at most {most}.\n  Use zoo {command}."


def _expected(spec: Model, figures: ModelFigures) -> list[ParameterCheck]:
    """The counts that the text itself expects."""
    report, expect, checks = figures.parameters, spec.expect, list[ParameterCheck]()
    if expect.parameters is not None:
        checks.append(ParameterCheck("", expect.parameters, report.total_parameters))
    if expect.active_parameters is not None:
        checks.append(ParameterCheck("", expect.active_parameters, report.active_parameters, active=True))
    return checks


def _lengths(spec: Model, question: Question) -> tuple[Lengths, bool]:
    """The sizes, and whether the length was cut to the context."""
    longest, wanted = spec.context_length_of(spec.last_stack), question.length
    if wanted is not None and not spec.embedding_of(spec.last_stack).any_length:
        wanted = None
    clamped = wanted is not None and longest is not None and wanted > longest
    return Lengths.of(spec, question.batch, longest if clamped else wanted), clamped


def _costs(report: Report, precision: str) -> dict[str, Any]:
    lengths = report.lengths
    return {
        "precision": precision,
        "sizes": {
            "batch": lengths.batch,
            "length": lengths.length,
            "past": lengths.past,
            "source": lengths.source,
        },
        "stages": {name: _stage(report, name) for name in report.costs.stages},
        "roles": [role.as_dict() for role in report.roles],
        "note": report.estimate_note,
    }


def _stage(report: Report, name: str) -> Mapping[str, Any]:
    stage, symbols = report.costs.stages[name], report.lengths.symbols(name)
    return {
        "matmul": stage.total.at(**symbols),
        "other": stage.total_elements.at(**symbols),
        "roles": {role: part.at(**symbols) for role, part in report.costs.by_role(name).items()},
        "tokens": report.lengths.tokens(name),
    }
