"""``zoo init``: a zoo file to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.options.options import Force, complete_spec
from cli.terminal.option import AsJson


def init(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SPEC",
            help="Models to keep: presets or spec files.  [default: tiny-gpt]",
            autocompletion=complete_spec,
            show_default=False,
        ),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a zoo.yaml for models to keep up to date.

    \b
    Examples:
      zoo init
      zoo init bert-base my-gpt.yaml
      zoo make --plan
    """
    from cli.options.files import write_new
    from cli.terminal.render import print_json, say
    from cli.terminal.screen import Screen
    from specs.base.errors import UserError
    from specs.files.new_spec import new_zoo
    from zoo.configs.named_model import named_model

    entries: dict[str, dict[str, str]] = {}
    for reference in models or ["tiny-gpt"]:
        named = named_model(reference)
        name = named.spec.name
        if name in entries:
            raise UserError(
                f"{reference}: another model is named {name!r}\n  Give one of the specs another name."
            )
        key = "spec" if named.own_weights is None else "weights"
        is_preset = name == reference and named.kind == "spec"
        entries[name] = {} if is_preset else {key: named.own_weights or reference}
    path = Path("zoo.yaml")
    write_new(path, new_zoo(entries), force, "directory")
    if as_json:
        print_json({"output": str(path), "models": list(entries)})
        return
    say(f"{path} keeps {', '.join(entries)}. Next:")
    Screen().next((["make", "--plan"], "what would be built"), (["make"], "build it"))
