"""A reduced model of a structure, exported for a target in a precision, and what engines show of its files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx

from exporters.export import export
from exporters.exported.load_export import plan_of_export
from exporters.exported.model_source import model_source
from exporters.exported.verify_export import request_of_export
from exporters.runtime.exported import open_export
from exporters.steps.graphs import Graphs
from exporters.steps.options import ExportOptions
from exporters.steps.plan import Plan
from exporters.steps.preconditions import check_options
from exporters.steps.verify import reduced_model_files, verification_request
from exporters.verification.compare import verify
from exporters.verification.engines.engine import Engine
from exporters.verification.engines.result import EngineResult
from exporters.verification.request import VerificationRequest
from exporters.verification.result import VerificationError
from exporters.verification.verified_model import probing_model
from specs.base.errors import UserError
from specs.model.model import Model
from tests.engines.reductions import whole_blocks, wide_heads
from tests.exporters.quality import checkpoints
from tests.exporters.reduced_presets import structure


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

    def plan(self) -> Plan:
        """The plan of its export.  Raises :class:`specs.base.errors.UserError` where the combination is refused."""
        chosen = dict(option for option in self.options if option not in REDUCTIONS)
        options = ExportOptions.of(target=self.target, precision=self.precision, **chosen)
        reductions = [REDUCTIONS[option] for option in self.options if option in REDUCTIONS]
        (reduced,) = reductions or [structure]
        spec = reduced(self.preset)
        plan = Plan.make(spec, options)
        check_options(plan.model, plan.spec, options)
        return plan


WIDE = ("heads", "wide")
"""The option of kinds whose heads keep their width, on which fused attention of ``tensorrt`` depends."""

WHOLE = ("widths", "whole blocks")
"""The option of kinds whose widths are in whole blocks where those of the preset are."""

REDUCTIONS: dict[tuple[str, Any], Callable[[str], Model]] = {WIDE: wide_heads, WHOLE: whole_blocks}

CALIBRATED = ("activations", "static")
"""The option of kinds that need a checkpoint: all of them are one BERT, whatever the preset."""


def graphs_of(kind: Kind) -> list[onnx.ModelProto]:
    """The graphs of a kind, without weights; none where the combination is refused."""
    try:
        if CALIBRATED not in kind.options:
            return [*Graphs.of(kind.plan()).messages().values()]
        with proof_for(kind) as proof:
            return [onnx.load(path, load_external_data=False) for path in proof.graphs]
    except UserError:
        return []


def shown_by(kind: Kind, engines: Sequence[Engine]) -> dict[str, EngineResult]:
    """What each engine shows of the files.  Raises :class:`VerificationError` where ONNX Runtime here does not compute them."""
    with proof_for(kind) as proof:
        try:
            verification = verify(replace(proof, engines=engines))
            assert not verification.constant, f"no input changes {', '.join(verification.constant)}"
            results = verification.engines
        except VerificationError as error:
            results = error.verification.engines
            if len(results) != len(engines):
                raise
    return {result.engine: result for result in results}


@contextmanager
def proof_for(kind: Kind) -> Iterator[VerificationRequest]:
    """Yield what is verified of the files of a kind, which are temporary."""
    with TemporaryDirectory() as name:
        place = Path(name) / "out"
        if CALIBRATED in kind.options:
            origin = str(checkpoints.bert(Path(name)))
            options = ExportOptions.of(
                target=kind.target, precision=kind.precision, weights=origin, **dict(kind.options)
            )
            export(model_source(origin).spec, place, options)
            exported = open_export(place)
            yield request_of_export(exported, plan_of_export(exported, options), _quiet, ())
            return
        plan = kind.plan()
        with reduced_model_files(Graphs.of(plan), probing_model(plan.spec), place, _quiet) as files:
            yield verification_request(files, _quiet)


def _quiet(stage: object) -> None:
    pass
