"""``zoo diff``: what differs between two models, and what it costs."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.options import AsJson, Assignments, complete_spec

_HELP = "A preset, a YAML file, an exported directory, or a checkpoint (its directory or config.json)."


def diff(
    a: Annotated[
        str, typer.Argument(metavar="A", help=_HELP, autocompletion=complete_spec, show_default=False)
    ],
    b: Annotated[
        str | None,
        typer.Argument(
            metavar="[B]",
            help="The same, to compare with.  [default: A with --set]",
            autocompletion=complete_spec,
            show_default=False,
        ),
    ] = None,
    assignments: Assignments = None,
    brief: Annotated[
        bool, typer.Option("--brief", "-q", help="Say only that they differ, if they do.", show_default=False)
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare two models: in the language of specs, module by module, and in what they cost.

    Defaults are filled in first, so that specs which say the same in other words are the same; names and published
    counts do not count. --set changes B. Of two exported directories, what was exported how is compared, too.

    Exit status: 0 the same, 1 different, 2 the input was wrong.

    \b
    Examples:
      zoo diff gpt2 --set position.kind=rope --set decoder.block.norm.kind=rms_norm
      zoo diff llama-2-7b llama-3-8b
      zoo diff bert-base my-bert.yaml --brief
      zoo diff build/gpt2 build/gpt2-int8 --json
    """
    from cli.command import FAILED
    from cli.render import print_json
    from specs.difference import differences
    from specs.errors import UserError
    from zoo.reports.side import read_side

    if b is None and not assignments:
        raise UserError(
            "there is nothing to compare with\n  give a second model, or change the first: --set position.kind=rope"
        )
    first, second = read_side(a), read_side(b or a, assignments or ())
    found = differences(first.spec, second.spec)
    ...
