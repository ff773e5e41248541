"""Arguments and options shared by several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.terminal.option_groups import ACTION, INPUTS, MODEL, QUALITY, RANDOM, RUNS, SIZES, TREE


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


def complete_family(incomplete: str) -> list[str]:
    """Complete the names of families."""
    from zoo.families.registry import model_types

    return [name for name in sorted(model_types()) if name.startswith(incomplete)]


ReadAs = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="FAMILY",
        help="Family to read a checkpoint of an unknown model_type as.",
        autocompletion=complete_family,
        rich_help_panel=MODEL,
    ),
]
_SPEC_HELP = "Preset, YAML file, checkpoint directory, GGUF file, or hub repository (ORG/NAME)."

SpecArgument = Annotated[
    str, typer.Argument(metavar="SPEC", help=_SPEC_HELP, autocompletion=complete_spec, show_default=False)
]
SpecArguments = Annotated[
    list[str],
    typer.Argument(metavar="SPEC", help=_SPEC_HELP, autocompletion=complete_spec, show_default=False),
]
ModelArgument = Annotated[
    str,
    typer.Argument(
        metavar="SPEC|DIR",
        help="Preset, YAML file, checkpoint directory, GGUF file, hub repository (ORG/NAME), or export.",
        autocompletion=complete_spec,
        show_default=False,
    ),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Override a key, as in position.kind=rope; repeatable.",
        show_default=False,
        rich_help_panel=MODEL,
    ),
]
Name = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Name of the model.  [default: from SPEC and --set]",
        show_default=False,
        rich_help_panel=MODEL,
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(
        metavar="SOURCE",
        help="Weights: random, a file, its directory, or a hub repository (ORG/NAME).  "
        "[default: SPEC's own, or random]",
        show_default=False,
        rich_help_panel=MODEL,
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed for random weights.", rich_help_panel=RANDOM)]
Tokenizer = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="A tokenizer.json, its directory, or a GGUF file.  [default: that of the model or its weights]",
        show_default=False,
        rich_help_panel=INPUTS,
    ),
]
Batch = Annotated[
    int, typer.Option(min=1, metavar="N", help="Batch size, in sequences.", rich_help_panel=SIZES)
]
Length = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Sequence length, in tokens.  [default: 1024, or the context length if shorter]",
        rich_help_panel=SIZES,
    ),
]
Depth = Annotated[
    int, typer.Option(min=0, metavar="N", help="Levels of the module tree to print.", rich_help_panel=TREE)
]
Unfold = Annotated[
    bool, typer.Option("--unfold", help="Print identical blocks one by one.", rich_help_panel=TREE)
]
Jobs = Annotated[
    int,
    typer.Option(
        "--jobs", "-j", min=1, metavar="N", help="Processes that run at once.", rich_help_panel=ACTION
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.", show_default=False)]
ExportDirectory = Annotated[
    Path, typer.Argument(metavar="DIR", help="The directory of an export.", show_default=False)
]
Unverified = Annotated[
    bool,
    typer.Option(
        "--unverified", help="Accept an export that was not compared with PyTorch.", rich_help_panel=ACTION
    ),
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
        rich_help_panel=RUNS,
    ),
]
Digests = Annotated[
    bool | None,
    typer.Option(
        "--digests/--no-digests",
        help="Compare exported files with their recorded SHA-256.  [default: up to 2 GB per export]",
        show_default=False,
        rich_help_panel=QUALITY,
    ),
]
