"""``zoo pull``: fetch a published export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.options.options import AsJson


def pull(
    source: Annotated[
        str,
        typer.Argument(metavar="ADDRESS", help="hf://ORG/NAME[@BRANCH], oci://REGISTRY/NAME:TAG, or a path."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Output directory.")],
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
    from cli.terminal.progress import stage_progress
    from cli.terminal.render import print_json, say
    from exporters.remotes.addresses import remote_of
    from exporters.remotes.pull import pull as fetch
    from zoo.core.units import byte_text

    with stage_progress(quiet=as_json) as progress:
        manifest = fetch(remote_of(source), output, progress)
    size = sum(file.size for file in manifest.files.values())
    if as_json:
        files = {name: file.model_dump() for name, file in manifest.files.items()}
        print_json({"from": source, "directory": str(output), "files": files})
        return
    say(f"{output}: {len(manifest.files):,} files, {byte_text(size)}, all as export.json records them.")
