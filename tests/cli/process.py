"""The real program, as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ZOO = [sys.executable, "-c", "from cli.main import main; main()"]


def zoo(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    settings = {"capture_output": True, "encoding": "utf-8", "timeout": 200, **options}
    return subprocess.run([*ZOO, *arguments], check=False, **settings)


def environment(**changes: str) -> dict[str, str]:
    """This process's environment with changes, and without what decides about colours and widths."""
    kept = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "TERM")}
    return {**kept, "PYTHONPATH": str(Path.cwd()), **changes}
