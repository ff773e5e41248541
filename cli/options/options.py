"""Arguments and options shared by several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def complete_spec(incomplete: str) -> list[str]:
    """Complete presets, YAML files and directories."""
    from specs.language.catalog import preset_names

    directory = Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent
    entries = directory.glob("*") if directory.is_dir() else ()
    files = [
        f"{path}/" if path.is_dir() else str(path)
        for path in entries
        if path.is_dir() or path.suffix == ".yaml"
    ]
    return [name for name in [*preset_names(), *sorted(files)] if name.startswith(incomplete)]


def complete_provider(incomplete: str) -> list[str]:
    """Complete the names of execution providers."""
    from exporters.target.providers import known_providers

    return [name for name in known_providers() if name.startswith(incomplete)]


_SPEC_HELP = "Preset name (see zoo list) or YAML file."

SpecArgument = Annotated[
    str, typer.Argument(metavar="SPEC", help=_SPEC_HELP, autocompletion=complete_spec, show_default=False)
]
SpecArguments = Annotated[
    list[str],
    typer.Argument(metavar="SPEC", help=_SPEC_HELP, autocompletion=complete_spec, show_default=False),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Override a key of the spec, as in --set position.kind=rope; repeatable, applied in order.",
        show_default=False,
    ),
]
ExportDirectory = Annotated[
    Path, typer.Argument(metavar="DIR", help="The directory of an export.", show_default=False)
]
Unverified = Annotated[
    bool, typer.Option("--unverified", help="Accept an export that was not compared with PyTorch.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.", show_default=False)]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print all tables.", show_default=False)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print failures only.", show_default=False)]
ProviderName = Annotated[
    str | None,
    typer.Option(
        "--provider",
        metavar="NAME",
        help="Execution provider of ONNX Runtime to run on: cpu, cuda, or any other that is installed.  "
        "[default: the first of the export's target that this machine has]",
        autocompletion=complete_provider,
        show_default=False,
    ),
]
Digests = Annotated[
    bool | None,
    typer.Option(
        "--digests/--no-digests",
        help="Compare exported files with their recorded SHA-256.  [default: up to 2 GB per export]",
        show_default=False,
    ),
]
