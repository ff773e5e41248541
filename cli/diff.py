"""``zoo diff``: what differs between two models, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import AsJson, Assignments, Digests, complete_spec

if TYPE_CHECKING:
    from zoo.reports.difference import ModelDifference
    from zoo.reports.spec_difference import SpecDifference

_HELP = "A preset, a YAML file, an exported directory, or a checkpoint (its directory or config.json)."


def diff(
    a: Annotated[
        str, typer.Argument(metavar="A", help=_HELP, autocompletion=complete_spec, show_default=False)
    ],
    b: Annotated[
        str | None,
        typer.Argument(
            metavar="B",
            help="The same, to compare with.  [default: A with --set]",
            autocompletion=complete_spec,
            show_default=False,
        ),
    ] = None,
    assignments: Assignments = None,
    depth: Annotated[int, typer.Option(min=0, metavar="N", help="Levels of modules to show.")] = 4,
    batch: Annotated[int, typer.Option(min=1, metavar="N", help="Sequences to cost at once.")] = 1,
    length: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Tokens of a prompt, and in the cache.  [default: 1024, or the shortest context]",
            show_default=False,
        ),
    ] = None,
    brief: Annotated[
        bool, typer.Option("--brief", "-q", help="Say only that they differ, if they do.", show_default=False)
    ] = False,
    digests: Digests = None,
    as_json: AsJson = False,
) -> None:
    """Compare two models: in the language of specs, module by module, and in what they cost.

    Defaults are filled in first, so that specs which say the same in other words are the same; names and published
    counts do not count. --set changes B. Two exported directories are also compared in how they were exported and in
    their weights, tensor by tensor, and the files of each with its own record of them.

    Exit status: 0 the same, 1 different, 2 the input was wrong.

    \b
    Examples:
      zoo diff gpt2 --set position.kind=rope --set decoder.block.norm.kind=rms_norm
      zoo diff llama-2-7b llama-3-8b
      zoo diff bert-base my-bert.yaml --brief
      zoo diff build/gpt2 build/gpt2-int8 --json
    """
    from cli.diff_tables import print_models, print_specs
    from cli.exit_status import FAILED
    from cli.export_differences import print_changes, print_exports, print_weights
    from cli.render import print_json, say
    from specs.errors import UserError
    from zoo.reports.side import read_side
    from zoo.reports.spec_difference import compare_specs

    if b is None and not assignments:
        remedy = "give a second model, or change the first: --set position.kind=rope"
        raise UserError(f"there is nothing to compare {a} with\n  {remedy}")
    found = compare_specs(read_side(a), read_side(b or a, assignments or ()), digests=digests)
    if brief:
        if not found.same:
            say(f"{found.a.label} and {found.b.label} differ")
    elif as_json:
        print_json(_whole(found, batch, length).as_dict())
    else:
        whole = _whole(found, batch, length) if found.spec else None
        print_specs(found)
        if whole is not None:
            print_models(whole, depth=depth, typed=b is None)
        if found.exports:
            print_exports(found.exports)
        if found.weights is not None:
            print_weights(found.weights)
        for side, integrity in zip((found.a, found.b), found.integrity, strict=True):
            if integrity is not None:
                print_changes(side.label, integrity)
    if not found.same:
        raise typer.Exit(FAILED)


def _whole(found: SpecDifference, batch: int, length: int | None) -> ModelDifference:
    """The same with modules and costs."""
    from zoo.reports.difference import compare_models

    return compare_models(found, batch=batch, length=length)
