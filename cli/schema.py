"""``zoo schema``: the JSON Schema of the spec language."""

from __future__ import annotations

from typing import Annotated

import typer


def schema(
    as_json: Annotated[bool, typer.Option("--json", help="Changes nothing: a schema is JSON.")] = False,
) -> None:
    """Print the JSON Schema of specs.

    Editors complete and check by it; it has every registered kind, those of plugins too.

    \b
    Examples:
      zoo schema > zoo.schema.json
    and in the first line of a spec:
      # yaml-language-server: $schema=zoo.schema.json
    """
    from cli.render import print_json
    from specs.schema import json_schema

    print_json(json_schema())
