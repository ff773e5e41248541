"""``zoo diff``: differences between two models, and their cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options.options import Assignments, Batch, Depth, Digests, Length, complete_spec
from cli.terminal.screen import Screen

if TYPE_CHECKING:
    from zoo.reports.difference import ModelDifference
    from zoo.reports.spec_difference import SpecDifference

_HELP = "Preset, YAML file, checkpoint, hub repository, or the directory of an export."


@dataclass(frozen=True)
class DiffOptions:
    """The options of ``zoo diff``."""

    depth: Depth = 4
    batch: Batch = 1
    length: Length = None
    digests: Digests = None


def diff(
    context: typer.Context,
    a: Annotated[str, typer.Argument(metavar="A", help=_HELP, autocompletion=complete_spec)],
    b: Annotated[
        str | None,
        typer.Argument(
            metavar="B", help="Second model, as for A.  [default: A with --set]", autocompletion=complete_spec
        ),
    ] = None,
    assignments: Assignments = None,
    *,
    options: DiffOptions,
    screen: Screen,
) -> None:
    """Compare two models by spec, module and cost.

    Specs are compared with their defaults filled in, ignoring names and published counts. --set changes B. For two
    exported directories, the options and the weights are compared as well, and the files of each with its export.json.

    --quiet prints only whether they differ.

    Exit status: 0 the same, 1 different, 2 invalid input.

    \b
    Examples:
      zoo diff gpt2 --set position.kind=rope
      zoo diff llama-2-7b llama-3-8b
      zoo diff bert-base my-bert.yaml --quiet
      zoo diff build/gpt2 build/gpt2-int8 --json
    """
    from cli.options.given import given

    screen.tabulate_if(given(context, "depth"))
    from cli.terminal.exit_status import FAILED
    from cli.terminal.progress import working
    from cli.terminal.render import print_json, say
    from specs.base.errors import UserError
    from zoo.reports.side import read_side
    from zoo.reports.spec_difference import compare_specs

    if b is None and not assignments:
        remedy = "Pass a second model, or change the first with --set, as in --set position.kind=rope."
        raise UserError(f"Only one model to compare: {a}.\n  {remedy}")
    with working("compare", quiet=screen.silent):
        difference = compare_specs(
            read_side(a), read_side(b or a, assignments or ()), digests=options.digests
        )
        measured = screen.as_json or (not screen.quiet and bool(difference.spec))
        whole = _whole(difference, options.batch, options.length) if measured else None
    if screen.quiet:
        if not difference.same:
            say(f"{difference.a.label} and {difference.b.label} differ.")
    elif screen.as_json and whole is not None:
        print_json(whole.as_dict())
    else:
        _print(context, screen, difference, whole, depth=options.depth)
    if not difference.same:
        raise typer.Exit(FAILED)


def _print(
    context: typer.Context,
    screen: Screen,
    difference: SpecDifference,
    whole: ModelDifference | None,
    *,
    depth: int,
) -> None:
    """Print the differences between two models, ``whole`` with their modules and costs."""
    from cli.options.given import typed
    from cli.tables.diff_screen import print_difference
    from cli.tables.diff_tables import print_models, print_specs
    from cli.tables.export_differences import (
        print_changes,
        print_exports,
        print_uncompared,
        print_weights,
    )

    changed = context.params["b"] is None
    if screen.tables:
        print_specs(difference)
        if whole is not None:
            print_models(whole, depth=depth, typed=changed)
        if difference.exports:
            print_exports(difference.exports)
        if difference.weights is not None:
            print_weights(difference.weights)
    else:
        print_difference(screen, difference, whole, typed=changed)
    sides = [
        (side.label, integrity)
        for side, integrity in zip((difference.a, difference.b), difference.integrity, strict=True)
        if integrity is not None
    ]
    for label, integrity in sides:
        print_uncompared(label, integrity)
    screen.done("Compared")
    screen.next(*([] if screen.tables else [(typed(context, "-v"), "module by module")]))
    for label, integrity in sides:
        print_changes(screen, label, integrity)


def _whole(difference: SpecDifference, batch: int, length: int | None) -> ModelDifference:
    """The comparison with modules and costs added."""
    from zoo.reports.difference import compare_models

    return compare_models(difference, batch=batch, length=length)
