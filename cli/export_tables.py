"""What an export wrote, and the proof of it, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from cli.render import byte_text, console, table

if TYPE_CHECKING:
    from rich.text import Text

    from exporters.manifest import Export
    from exporters.verification import Comparison, RoundedWeight, Verification


EQUAL = 1e-3
"""Below which relative difference an output is called equal: beyond it a precision shows."""


def print_verification(verification: Verification) -> None:
    """Every comparison with its largest difference, and what ran."""
    numbers = ("largest difference", "relative", "allowed", "top token")
    columns = table("case", "input", "output", *numbers, "", right=numbers)
    for found in verification.summary:
        columns.add_row(
            found.case,
            found.shape,
            found.output,
            f"{found.max_abs:.1e}",
            f"{found.max_rel:.1e}",
            f"{found.tolerance:.1e}",
            "" if found.top_token is None else f"{found.top_token:.1%}",
            _verdict(found),
        )
    out = console()
    out.print(columns)
    out.print()
    word = "passed" if verification.passed else "failed"
    elsewhere = f" (not run on {verification.not_run})" if verification.not_run else ""
    typer.secho(
        f"verification: {word}, largest difference {verification.max_abs:.1e}, PyTorch against "
        f"{verification.runtime} on {verification.provider}{elsewhere}, on {verification.subject}",
        fg=typer.colors.GREEN if verification.passed else typer.colors.RED,
    )
    if magnified := verification.in_rounding:
        furthest = max(comparison.rounding or 0.0 for comparison in magnified)
        typer.secho(
            f"{len(magnified)} of {len(verification.comparisons)} comparisons say little: this model magnifies "
            f"rounding, PyTorch itself is up to {furthest:.1e} from arithmetic that is more exact",
            fg=typer.colors.YELLOW,
        )
    if (rounded := verification.worst_weight) is not None:
        typer.echo(_precision_text(verification, rounded))


def _precision_text(verification: Verification, rounded: RoundedWeight) -> str:
    """What the rounding of weights has changed: the comparisons above are with the weights as they are stored."""
    shares = [
        f"top tokens the same for {verification.top_token:.1%}" if verification.top_token is not None else "",
        f"outputs up to {verification.moved:.1e} away" if verification.moved is not None else "",
        f"of the weights {rounded.name} has changed most, by {rounded.error:.1e} (of {rounded.limit:.1e} allowed)",
    ]
    return (
        f"{verification.precision}, {verification.ran}: compared with the weights as stored in float32; "
        f"from the weights as they were: {', '.join(share for share in shares if share)}"
    )


def _verdict(found: Comparison) -> Text:
    from rich.text import Text

    if not found.passed:
        return Text("differs", style=typer.colors.RED)
    if found.rounding is not None:
        return Text("within rounding", style=typer.colors.YELLOW)
    return Text("equal" if found.max_rel < EQUAL else "close", style=typer.colors.GREEN)


def print_export(written: Export) -> None:
    """The files, what each graph needs, and how to load it."""
    out = console()
    if written.verification is not None:
        print_verification(written.verification)
    else:
        typer.secho("verification: not done", fg=typer.colors.YELLOW)
    columns = table("file", "size", "graph", right=("size",))
    for name, size in written.files.items():
        facts = written.graphs.get(name)
        graph = (
            ""
            if facts is None
            else f"{facts['nodes']} nodes, opset {facts['opset']}, {facts['minimum_runtime']} or later"
        )
        columns.add_row(name, byte_text(size), graph)
    out.print()
    out.print(columns)
    for name, facts in written.graphs.items():
        checked = facts["checked"]
        out.print(
            f"{name}: valid for the checker and the strict shape inference of {checked['checker']}, "
            f"{checked['ranked']} of {checked['results']} results have a known rank"
        )
        if used := facts["operations"]:
            counts = ", ".join(f"{count} {operation}" for operation, count in used.items())
            out.print(f"{name}: {counts}")
        for reason in facts["unfused"]:
            out.print(f"{name}: not fused: {reason}", style=typer.colors.YELLOW)
    out.print()
    out.print(
        f"{written.directory}: layout {written.layout}, target {written.target}, {written.precision}, weights {written.weights}"
    )
