"""``python -m tests.engines runtimes|matrix|stated [FILE]``: run files on engines, and write what they show.

FILE keeps the results as they come, so that an interrupted run goes on where it was.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path


def main() -> None:
    """Run one of the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.engines", description=__doc__)
    parser.add_argument("table", choices=("runtimes", "matrix", "stated"))
    parser.add_argument("results", nargs="?", type=Path, metavar="FILE")
    given = parser.parse_args()
    results = given.results or Path("build") / f"{given.table}.jsonl"
    results.parent.mkdir(parents=True, exist_ok=True)
    importlib.import_module(f"tests.engines.{given.table}").run(results)


if __name__ == "__main__":
    main()
