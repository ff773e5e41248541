"""``zoo pull``: fetch a published export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.terminal.option import AsJson, Quiet, option
from cli.terminal.option_groups import OUTPUT


def pull(
    source: Annotated[
        str,
        typer.Argument(metavar="ADDRESS", help="hf://ORG/NAME[@BRANCH], oci://REGISTRY/NAME:TAG, or a path."),
    ],
    output: Annotated[Path, option("DIR", "Output directory.", OUTPUT, "--output", "-o")],
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Fetch a published export, and compare every file with its digest.

    The directory appears once all files are there and as recorded. An earlier export in it is replaced, and its unchanged
    files are not fetched again.

    \b
    Examples:
      zoo pull hf://my-team/gpt2-onnx -o gpt2
      zoo pull oci://ghcr.io/my-team/gpt2:int8 -o gpt2-int8
    """
    from cli.terminal.screen import Screen

    screen = Screen(False, quiet, as_json)
    from cli.terminal.render import print_json
    from exporters.remotes.addresses import remote_of
    from exporters.remotes.pull import pull as fetch
    from zoo.core.units import byte_text
    from zoo.files.card import CARD
    from zoo.files.ownership import MANIFEST, own_files

    with screen.progress() as progress:
        manifest = fetch(remote_of(source), output, progress)
    if as_json:
        files = {name: file.model_dump() for name, file in manifest.files.items()}
        print_json({"directory": str(output), "from": source, "files": files})
        return
    names = (own_files(output, MANIFEST) or set()) | ({CARD} if (output / CARD).exists() else set())
    size = sum((output / name).stat().st_size for name in names)
    screen.title(str(output), "", f"{manifest.precision}, {manifest.target}")
    screen.row("from", source)
    screen.row("files", f"{len(names):,} files, {byte_text(size)}, as published; digests as in export.json")
    screen.done(f"{output} is ready")
    screen.next(
        (["verify", str(output)], "run it as it was verified"),
        (["report", str(output)], "what it costs to run"),
    )
