"""``zoo schema``: the JSON Schema of the spec language."""

from __future__ import annotations

from typing import Annotated

from cli.terminal.option import AsJson, switch


def schema(
    zoo_file: Annotated[
        bool, switch("--zoo-file", "Print the schema of zoo files, which zoo make reads.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print the JSON Schema of the spec language.

    The schema is JSON with and without --json. Editors use it to complete and check specs. It covers every registered kind, including those of plugins.

    \b
    Examples:
      zoo schema > zoo.schema.json
    then, as the first line of a spec:
      # yaml-language-server: $schema=zoo.schema.json
    and for zoo.yaml:
      zoo schema --zoo-file > zoo-file.schema.json
    """
    from cli.terminal.render import print_json

    if zoo_file:
        from specs.files.schema import zoo_file_schema

        print_json(zoo_file_schema())
    else:
        from specs.files.stored_schema import spec_schema

        print_json(spec_schema())
