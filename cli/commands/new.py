"""``zoo new``: a spec to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from cli.options.options import Force, complete_spec
from cli.terminal.option import AsJson, option
from cli.terminal.option_groups import MODEL


def new(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The spec to write; .yaml may be left out.", show_default=False),
    ],
    like: Annotated[
        str | None,
        option("SPEC", "Start as a copy of this preset or file.", MODEL, autocompletion=complete_spec),
    ] = None,
    architecture: Annotated[
        Literal["decoder", "encoder", "encoder-decoder"],
        option(None, "Start from a small model of this architecture.", MODEL),
    ] = "decoder",
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a short, commented spec to start from.

    \b
    Examples:
      zoo new my-gpt
      zoo new my-bert --architecture encoder
      zoo new my-llama --like llama-3.2-1b
      zoo build my-llama.yaml
    """
    from cli.options.files import write_new
    from cli.terminal.render import print_json, say
    from cli.terminal.screen import Screen
    from specs.files.new_spec import STARTS, new_spec
    from zoo.configs.named_model import named_model

    path = file if file.suffix in (".yaml", ".yml") else file.with_name(f"{file.name}.yaml")
    start = like or STARTS[architecture]
    write_new(path, new_spec(path.stem, named_model(start).document), force)
    if as_json:
        print_json({"name": path.stem, "output": str(path), "like": start})
        return
    say(f"{path} starts as a copy of {start}. Change it, then:")
    Screen().next(
        (["validate", str(path)], "check it, with fixes"),
        (["report", str(path)], "what it costs"),
        (["build", str(path)], "count, test and export it"),
    )
