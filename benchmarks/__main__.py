"""``python -m benchmarks [name ...]``: run the benchmarks and print ratios; exit status 1 when a bound is not kept."""

from __future__ import annotations

import argparse
import importlib

from rich.console import Console
from rich.table import Table

NAMES = (
    "start",
    "params",
    "understanding",
    "tracing",
    "exporting",
    "cost",
    "deploying",
    "encoding",
    "decoding",
    "generating",
    "mixtures",
    "states",
    "studio",
)

ON_GPU = "gpu"
"""The benchmark that needs a GPU."""


def main() -> None:
    """Run the benchmarks named, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    known = ", ".join(NAMES)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"which: {known} (default: these), or {ON_GPU}"
    )
    table = Table("benchmark", "figure", "baseline", "ratio", "bound", "")
    kept = True
    for name in parser.parse_args().names or NAMES:
        for result in importlib.import_module(f"benchmarks.{name}").results():
            bound = f"{'at most' if result.at_most else 'at least'} {result.bound:g}"
            table.add_row(
                result.name,
                result.figure,
                result.baseline,
                "" if result.ratio is None else f"{result.ratio:.2f}",
                bound,
                result.verdict,
            )
            kept = kept and result.met
    Console(width=170).print(table)
    raise SystemExit(0 if kept else 1)


if __name__ == "__main__":
    main()
