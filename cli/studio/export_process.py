"""An export in a process of its own, which reads a request from standard input and writes a JSON line per event.

The studio starts it, so that an edit is answered while files are written, and ends it when the page asks for that.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any


def main() -> None:
    """Export the spec of the request."""
    request = json.loads(sys.stdin.read())
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no event

    def tell(event: str, **data: Any) -> None:
        out.write(json.dumps({"event": event, **data}) + "\n")
        out.flush()

    from specs.base.errors import UserError, with_flags

    try:
        _export(request, tell)
    except UserError as error:
        tell("failed", message=with_flags(error.text), verification=_verification(error))


def _verification(error: Exception) -> dict[str, Any] | None:
    verification = getattr(error, "verification", None)
    return None if verification is None else verification.as_dict()


def _export(request: dict[str, Any], tell: Any) -> None:
    from cli.options.default_directory import export_directory
    from cli.studio.typed_spec import TypedSpec
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
        files=[[name, size, byte_text(size)] for name, size in written.files.items()],
        verification=done and {**done.as_dict(), "where": done.where, "max_abs": done.max_abs},
        summary=done and [comparison.as_dict() for comparison in done.summary],
    )


if __name__ == "__main__":
    main()
