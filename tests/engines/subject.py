"""A reduced model of a structure, exported for a target in a precision, and what engines show of its files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx

from exporters.engines.engine import Engine
from exporters.engines.result import EngineResult
from exporters.exportable import check_options
from exporters.options import Options
from exporters.plan import ExportPlan
from exporters.proving import proof_of, reduced_model_files
from exporters.subject import Subject
from exporters.verification import VerificationError
from exporters.verify import verify
from specs.errors import UserError
from tests.exporters.reduced_presets import structure
from zoo.weights.random import RandomWeights


@dataclass(frozen=True)
class Kind:
    """Files of one kind: the structure of a preset, a target, a precision and further options."""

    preset: str
    target: str
    precision: str
    options: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        more = "".join(f" {name}={value}" for name, value in self.options)
        return f"{self.preset} {self.target} {self.precision}{more}"

    def plan(self) -> ExportPlan:
        """The plan of its export.  Raises :class:`specs.errors.UserError` where the combination is refused."""
        options = Options(target=self.target, precision=self.precision, **dict(self.options))
        plan = ExportPlan.make(structure(self.preset), options)
        check_options(plan.model, plan.spec, options)
        return plan


def graphs_of(kind: Kind) -> list[onnx.ModelProto]:
    """The graphs of a kind, without weights; none where the combination is refused."""
    try:
        return [*kind.plan().messages().values()]
    except UserError:
        return []


def shown_by(kind: Kind, engines: Sequence[Engine]) -> dict[str, EngineResult]:
    """What each engine shows of the files.  Raises :class:`VerificationError` where ONNX Runtime here does not compute them."""
    plan = kind.plan()
    subject = Subject(plan.spec, RandomWeights(plan.model, plan.spec), is_reduced=True, description=str(kind))

    def quiet(stage: object) -> None:
        pass

    with (
        TemporaryDirectory() as name,
        reduced_model_files(plan, subject, Path(name) / "out", quiet) as (place, reference),
    ):
        proof = replace(proof_of(plan, place, subject, reference, quiet), engines=engines)
        try:
            results = verify(proof).engines
        except VerificationError as error:
            results = error.verification.engines
            if len(results) != len(engines):
                raise
    return {result.engine: result for result in results}
