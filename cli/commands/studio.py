"""``zoo studio``: a local page that shows what an edit of a spec changes."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.options.options import complete_spec
from cli.terminal.option import AsJson, option, switch


def studio(
    spec: Annotated[
        str | None,
        typer.Argument(
            metavar="[SPEC]",
            help="Preset, file, checkpoint, hub id, export, or a link copied from a studio.  [default: tiny-gpt]",
            autocompletion=complete_spec,
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int | None,
        option("N", "Port on 127.0.0.1.  [default: 8642, or the next free one]", min=1024, max=65535),
    ] = None,
    no_browser: Annotated[
        bool, switch("--no-browser", "Print the address without opening a browser.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Edit an architecture in the browser and see its figures change.

    Serves a page on this machine alone: the spec with completion and fixes, its drawing, and exact parameters, FLOPs,
    memory and device bounds, compared with a base. Every figure is computed as the other commands compute it. The page
    works without a network. Ctrl-C ends it. --json prints the address as JSON.

    \b
    Examples:
      zoo studio
      zoo studio llama-3-8b
      zoo studio my-model.yaml --no-browser --port 9000
      zoo studio path/to/model.gguf
    """
    from cli.studio.serve import serve

    serve(spec, port, browser=not no_browser, as_json=as_json)
