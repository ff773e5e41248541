"""The export of a spec, as ``zoo export`` makes it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any


def run(request: Mapping[str, Any], tell: Callable[..., None]) -> None:
    """Export the spec of the request to the directory that ``zoo export`` chooses, and verify it."""
    from cli.options.default_directory import export_directory
    from cli.studio.typed_spec import TypedSpec
    from cli.tables.export_tables import rounding_text
    from cli.tables.next_steps import trial
    from exporters.export import export
    from exporters.steps.options import ExportOptions
    from zoo.core.progress import Stage
    from zoo.core.units import byte_text

    folder = Path(request["folder"])
    spec = TypedSpec.read(request["text"], folder).model
    options = ExportOptions(**request["options"])
    directory = export_directory(spec.name, options)

    def progress(stage: Stage) -> None:
        tell("progress", **asdict(stage))

    written = export(spec, folder / directory, options, progress)
    done = written.verification
    tell(
        "done",
        directory=str(directory),
        weights=request["options"].get("weights", "random"),
        files=[[name, size, byte_text(size)] for name, size in written.files.items()],
        verification=done and {**done.as_dict(), "where": done.where, "max_abs": done.max_abs},
        rounding=done and rounding_text(done),
        summary=done and [comparison.as_dict() for comparison in done.summary],
        next=[shlex.join(["zoo", *arguments]) for arguments, _ in trial(spec, written, options, directory)],
    )
