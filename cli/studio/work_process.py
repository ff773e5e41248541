"""Long work in a process of its own, which reads a request from standard input and writes a JSON line per event.

The studio starts it, so that an edit is answered meanwhile, and ends it when the page asks for that.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def main() -> None:
    """Do the work of the request."""
    request = json.loads(sys.stdin.read())
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no event

    def tell(event: str, **data: Any) -> None:
        out.write(json.dumps({"event": event, **data}) + "\n")
        out.flush()

    from specs.base.errors import UserError, with_flags

    try:
        _work(request.pop("work"))(request, tell)
    except UserError as error:
        tell("failed", message=with_flags(error.text), verification=_verification(error))
    except OSError as error:
        tell("failed", message=f"{error.filename}: {error.strerror}")


def _work(name: str) -> Any:
    from cli.studio import checkpoint_work, export_work, training_work

    works = {"export": export_work, "training": training_work, "checkpoint": checkpoint_work}
    return works[name].run


def _verification(error: Exception) -> dict[str, Any] | None:
    verification = getattr(error, "verification", None)
    return None if verification is None else verification.as_dict()


if __name__ == "__main__":
    main()
