"""``python -m tests.engines runtimes|matrix|stated|tensorrt [FILE]``: run files on engines, and write what they show.

FILE keeps the results as they come, so that an interrupted run goes on where it was.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

TABLES = {
    "runtimes": "tests.engines.runtimes",
    "matrix": "tests.engines.matrix",
    "stated": "tests.engines.stated",
    "tensorrt": "tests.engines.tensorrt_table",
}


def main() -> None:
    """Run one of the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.engines", description=__doc__)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("results", nargs="?", type=Path, metavar="FILE")
    given = parser.parse_args()
    results = given.results or Path("build") / f"{given.table}.jsonl"
    results.parent.mkdir(parents=True, exist_ok=True)
    importlib.import_module(TABLES[given.table]).run(results)


if __name__ == "__main__":
    main()
