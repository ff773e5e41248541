"""Arguments and options shared by several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.terminal.option import option, switch
from cli.terminal.option_groups import ACTION, DECODING, INPUTS, MODEL, QUALITY, RANDOM, RUNS, SIZES, TREE


def complete_spec(incomplete: str) -> list[str]:
    """Complete presets, YAML files and directories."""
    from specs.language.preset_files import preset_names

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
    option(
        "FAMILY",
        "Family to read an unknown model_type as, or a class.",
        MODEL,
        "--as",
        autocompletion=complete_family,
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
    option("PATH=VALUE", "Override a key, as in position.kind=rope; repeatable.", MODEL, "--set"),
]
Name = Annotated[str | None, option("NAME", "Name of the model.  [default: from SPEC and --set]", MODEL)]
Weights = Annotated[
    str | None,
    option(
        "SOURCE",
        "Weights: random, a file, directory or hub repository.  [default: SPEC's own, or random]",
        MODEL,
    ),
]
Seed = Annotated[int, option("N", "Seed for random weights.", RANDOM)]
Tokenizer = Annotated[
    Path | None,
    option(
        "PATH",
        "A tokenizer.json, its directory, or a GGUF file.  [default: that of the model or its weights]",
        INPUTS,
    ),
]
Batch = Annotated[int, option("N", "Batch size, in sequences.", SIZES, min=1)]
Length = Annotated[
    int | None,
    option(
        "N", "Sequence length, in tokens.  [default: 1024, or the context length if shorter]", SIZES, min=1
    ),
]
Depth = Annotated[int, option("N", "Levels of the module tree to print.", TREE, min=0)]
Unfold = Annotated[bool, switch("--unfold", "Print identical blocks one by one.", TREE)]
Jobs = Annotated[int, option("N", "Processes that run at once.", ACTION, "--jobs", "-j", min=1)]
Force = Annotated[bool, switch("--force", "Replace existing files.")]
ExportDirectory = Annotated[
    Path, typer.Argument(metavar="DIR", help="The directory of an export.", show_default=False)
]
Unverified = Annotated[
    bool, switch("--unverified", "Accept an export that was not compared with PyTorch.", ACTION)
]
ProviderName = Annotated[
    str | None,
    option(
        "NAME",
        "Execution provider of ONNX Runtime to run on: cpu, cuda, or any other that is installed.  "
        "[default: the first of the export's target that this machine has]",
        RUNS,
        "--provider",
        autocompletion=complete_provider,
    ),
]
DraftDirectory = Annotated[
    Path | None,
    option("DIR", "Export of a smaller decoder that proposes tokens (speculative decoding).", DECODING),
]
DraftTokens = Annotated[
    int | None,
    option("N", "Number of tokens that the draft proposes at a time.  [default: 4]", DECODING, min=1),
]
Digests = Annotated[
    bool | None,
    switch(
        "--digests/--no-digests",
        "Compare exported files with their recorded SHA-256.  [default: up to 2 GB per export]",
        QUALITY,
    ),
]


def check_draft_tokens(draft_tokens: int | None, draft: Path | None) -> None:
    """Raise :class:`specs.base.errors.UserError` for a number of draft tokens without a draft."""
    from specs.base.errors import UserError

    if draft_tokens is not None and draft is None:
        raise UserError("--draft-tokens applies only to a draft.\n  Add --draft, or remove the option.")
