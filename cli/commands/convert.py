"""``zoo convert``: a model as a Hugging Face checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.options.export_options import flag
from cli.options.options import (
    AsJson,
    Assignments,
    Name,
    Quiet,
    SpecArgument,
    Verbose,
    Weights,
    complete_family,
)
from cli.terminal.option_groups import PRECISION

Family = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="FAMILY",
        help="model_type to write, and to read a checkpoint of an unknown type as.  "
        "[default: that of the weights, or the first that fits]",
        autocompletion=complete_family,
        rich_help_panel=PRECISION,
    ),
]
CheckpointDirectory = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        help="Output directory; only an earlier conversion in it is replaced.  "
        "[default: build/NAME-checkpoint, with --dtype and --as if given]",
    ),
]
WeightType = Annotated[
    str,
    typer.Option(metavar="fp32|fp16|bf16", help="Data type of the weights.", rich_help_panel=PRECISION),
]


def check_dtype(dtype: str) -> None:
    """Raise :class:`specs.base.errors.UserError` for an unknown data type of weights."""
    from specs.base.errors import UserError
    from specs.base.suggest import suggestion
    from zoo.checkpoints.converting import DTYPES

    if dtype not in DTYPES:
        raise UserError(f"--dtype {dtype!r} is unknown\n  {suggestion(dtype, DTYPES)}")


def convert(
    spec: SpecArgument,
    assignments: Assignments = None,
    name: Name = None,
    weights: Weights = None,
    seed: Annotated[int, flag("seed")] = 0,
    output: CheckpointDirectory = None,
    family: Family = None,
    dtype: WeightType = "fp32",
    remote_code: Annotated[
        bool,
        typer.Option(
            "--remote-code",
            help="Write the model's own code with it, for architectures that no family can express; loads with "
            "trust_remote_code=True.",
            rich_help_panel=PRECISION,
        ),
    ] = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write a model as a Hugging Face checkpoint.

    The result loads with from_pretrained of transformers, or with sentence-transformers. The config is read back and must
    give the same architecture; a spec that no family can express is refused, with its differences from the nearest.
    Tokenizer files beside the weights are copied.

    \b
    Examples:
      zoo convert llama-3.2-1b
      zoo convert my-bert.yaml --weights path/to/checkpoint -o my-bert
      zoo convert gpt2 --weights path/to/gpt2 --dtype fp16 --as gpt2
      zoo convert path/to/checkpoint --dtype bf16 -o my-checkpoint
      zoo convert my-variant.yaml --remote-code -o my-variant
    """
    from cli.terminal.screen import Screen

    screen = Screen(verbose, quiet, as_json)
    from cli.options.default_directory import checkpoint_directory
    from cli.options.given import with_set
    from cli.tables.conversion_rows import checkpoint_rows
    from cli.tables.model_rows import read_as_row, title
    from cli.terminal.render import Column, print_json, print_table
    from specs.base.errors import UserError
    from zoo.checkpoints.converting import convert as convert_checkpoint
    from zoo.configs.named_model import named_model, unknown_family
    from zoo.core.units import byte_text
    from zoo.files.destination import CONVERSION, replacing
    from zoo.remote_code.write import convert_with_code

    check_dtype(dtype)
    named = named_model(spec, assignments or (), name, unknown_family(spec, family))
    model = named.spec
    destination = output or checkpoint_directory(model.name, dtype, family)
    if remote_code and family:
        raise UserError("--remote-code and --as are mutually exclusive\n  Remove one of them.")
    weights = named.weights(weights)
    with screen.progress() as progress, replacing(destination, CONVERSION) as directory:
        if remote_code:
            written = convert_with_code(model, weights, directory, dtype=dtype, seed=seed, progress=progress)
        else:
            written = convert_checkpoint(
                model, weights, directory, model_type=family, dtype=dtype, seed=seed, progress=progress
            )
    if as_json:
        print_json({"name": model.name, "directory": str(destination), **written.as_dict()})
        return
    title(screen, model)
    read_as_row(screen, named)
    if screen.tables:
        print_table(
            ["file", Column("size", right=True)],
            [(name, byte_text(size)) for name, size in written.files.items()],
        )
    checkpoint_rows(screen, written, destination, remote_code=remote_code)
    screen.done(f"{destination} is ready")
    screen.next(
        (["build", *with_set(spec, assignments, name), "--weights", str(destination)], "export these weights")
    )
