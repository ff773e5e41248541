"""Verification that the files of an export still compute what they did when it was built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from exporters.data.stored_scales import read_scales
from exporters.exported.load_export import load_export, options_of, plan_of_export, readable_regions
from exporters.graph.quantization.cache_scales import cache_of
from exporters.runtime.exported import Exported, open_export
from exporters.steps.graphs import Graphs
from exporters.steps.plan import Plan
from exporters.verification.cases import cases
from exporters.verification.compare import verify
from exporters.verification.engines.check import check_engines, check_installed
from exporters.verification.engines.table import engine_named
from exporters.verification.exact.graph import unrounded_values
from exporters.verification.reference import Reference
from exporters.verification.request import VerificationRequest
from exporters.verification.result import Verification, VerificationError
from exporters.verification.runtime_outputs import RefusalError, load, run
from exporters.verification.verified_model import QUICK, has_room
from specs.base.result_table import ResultTable
from specs.base.tabular import Tabular
from zoo.core.progress import Progress, Stage
from zoo.record.integrity import Integrity, check_integrity
from zoo.record.manifest import read_record

SUBJECT = "the model with the weights of the files"


@dataclass(frozen=True)
class ExportVerification(Tabular):
    """The result of verifying an exported directory.

    ``integrity`` compares the files with their recorded digests. ``verification`` compares the graphs with PyTorch on the
    weights in the files; where it is None, ``unproven`` gives the reason. ``fault`` is the reason why the graphs do not
    run, or empty.
    """

    directory: Path
    integrity: Integrity
    verification: Verification | None = None
    unproven: str = ""
    fault: str = ""

    @property
    def passed(self) -> bool:
        """Whether the files are intact, the graphs run, and no comparison failed."""
        compared = self.verification is None or self.verification.passed
        return self.integrity.intact and not self.fault and compared

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "directory": str(self.directory),
            "passed": self.passed,
            "integrity": self.integrity.as_dict(),
            "verification": None if self.verification is None else self.verification.as_dict(),
            "unproven": self.unproven or None,
            "fault": self.fault or None,
        }

    def table(self) -> ResultTable:
        """The result of each comparison."""
        rows = [("files", str(change)) for change in self.integrity.changes] or [("files", "as recorded")]
        largest = ""
        if self.verification is not None:
            compared = len(self.verification.comparisons)
            largest = f", largest difference {self.verification.max_abs:.1e}"
            rows += [("engine", str(engine)) for engine in self.verification.engines]
            rows.append(("graphs", f"{compared} outputs compared with PyTorch{largest}"))
        if self.fault:
            rows.append(("graphs", self.fault))
        if self.unproven:
            rows.append(("graphs", f"not compared with PyTorch: {self.unproven}"))
        verdict = "passed" if self.passed else "failed"
        return ResultTable(f"{self.directory}: {verdict}{largest}", ("part", "result"), rows)


def verify_export(
    directory: Path, progress: Progress = lambda stage: None, engines: Sequence[str] = ()
) -> ExportVerification:
    """Compare the files of an export with its record, then its graphs with PyTorch on the weights of the files.

    Graphs that cannot be compared are run once; ``engines`` run the cases as well.  Raises :class:`specs.base.errors.UserError` for a directory that is not an
    export.
    """
    record = read_record(directory)
    manifest = record.manifest
    check_engines(engines, manifest.target, verify=True)
    check_installed(engines)
    progress(Stage("compare digests"))
    integrity = check_integrity(record, contents=True)
    if not integrity.intact:
        return ExportVerification(directory, integrity, unproven="the files have changed")
    if manifest.weights == "none":
        return ExportVerification(directory, integrity, unproven="the export has no weights")
    exported = open_export(directory)
    plan = plan_of_export(exported, options_of(exported))
    outcome = ExportVerification(directory, integrity)
    if readable_regions(exported) is None:
        reason = "another version of zoo wrote the files, or PyTorch's exporter did"
        return replace(outcome, unproven=reason, fault=_run_once(exported, plan))
    if not has_room(plan.held_bytes):
        return replace(outcome, unproven="the model does not fit in memory", fault=_run_once(exported, plan))
    try:
        return replace(outcome, verification=verify(request_of_export(exported, plan, progress, engines)))
    except VerificationError as error:
        return replace(outcome, verification=error.verification)


def request_of_export(
    exported: Exported, plan: Plan, progress: Progress, engines: Sequence[str]
) -> VerificationRequest:
    """The request to verify an export: its graphs, against the model with the weights of its files."""
    traced = Graphs.of(plan)
    graphs, data = traced.graphs, exported.directory / plan.data_paths[0]
    return VerificationRequest(
        graphs={exported.directory / name: task for name, task in plan.graph_paths.items()},
        unrounded={graph.name: unrounded_values(graph) for graph in graphs},
        reference=Reference(plan.spec, lambda: load_export(exported)),
        target=plan.target,
        precision=plan.precision,
        subject=SUBJECT,
        is_itself=True,
        progress=lambda case: progress(Stage(f"verify: {case}")),
        written=lambda: None,
        take_stored=None,
        padding=graphs[-1].padding,
        main_only=plan.held_bytes > QUICK,
        cache=cache_of(graphs, read_scales(graphs, data, traced.regions)),
        engines=[engine_named(name) for name in engines],
        layer_outputs=plan.layer_outputs,
    )


def _run_once(exported: Exported, plan: Plan) -> str:
    """Return the reason why the graphs fail on a prompt and a step; empty where all outputs are finite."""
    dtype, padding = plan.precision.dtype_on(plan.target), exported.cache.padding
    slots = [*plan.graph_paths.values()][-1].cache_slots
    case = next(case for case in cases(plan.spec, padding, slots) if case.main)
    try:
        loaded = [
            load(exported.directory / name, task, plan.target, dtype, packed=True)
            for name, task in plan.graph_paths.items()
        ]
        outputs = run(loaded, case, frozenset(), padding)
    except RefusalError as refusal:
        return f"ONNX Runtime rejects them: {refusal}"
    infinite = [name for name, tensor in outputs.items() if not tensor.isfinite().all()]
    return f"{', '.join(infinite)}: not finite" if infinite else ""
