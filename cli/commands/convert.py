"""``zoo convert``: a model as a Hugging Face checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.options.export_options import flag
from cli.options.options import AsJson, Assignments, SpecArgument


def complete_family(incomplete: str) -> list[str]:
    """Complete the names of families."""
    from zoo.families.registry import model_types

    return [name for name in sorted(model_types()) if name.startswith(incomplete)]


Family = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="FAMILY",
        help="model_type to write.  [default: that of the weights, or the first that can express the spec]",
        autocompletion=complete_family,
    ),
]
CheckpointDirectory = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        help="Output directory; replaces the files of an earlier conversion there and no others.  "
        "[default: build/NAME-checkpoint, with --dtype and --as if given]",
    ),
]
WeightType = Annotated[str, typer.Option(metavar="fp32|fp16|bf16", help="Data type of the weights.")]


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
    weights: Annotated[
        str,
        typer.Option(
            metavar="random|PATH",
            help="Source of the weights: random, or a checkpoint in any supported format.",
        ),
    ] = "random",
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
        ),
    ] = False,
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
      zoo convert my-variant.yaml --weights path/to/checkpoint --remote-code -o my-variant
    """
    from cli.options.default_directory import checkpoint_directory
    from cli.terminal.progress import stage_progress
    from cli.terminal.render import Column, print_json, print_table, say
    from specs.base.errors import UserError
    from specs.language.load import load
    from zoo.checkpoints.converting import convert as convert_checkpoint
    from zoo.core.units import byte_text
    from zoo.files.destination import CONVERSION, replacing
    from zoo.remote_code.write import convert_with_code
    from zoo.weights.modules import MODULES

    check_dtype(dtype)
    model = load(spec, assignments or ())
    destination = output or checkpoint_directory(model.name, dtype, family)
    if remote_code and family:
        raise UserError("--remote-code and --as are mutually exclusive\n  Remove one of them.")
    with stage_progress(quiet=as_json) as progress, replacing(destination, CONVERSION) as directory:
        if remote_code:
            written = convert_with_code(model, weights, directory, dtype=dtype, seed=seed, progress=progress)
        else:
            written = convert_checkpoint(
                model, weights, directory, model_type=family, dtype=dtype, seed=seed, progress=progress
            )
    if as_json:
        print_json({"directory": str(destination), **written.as_dict()})
        return
    print_table(
        ["file", Column("size", right=True)],
        [(name, byte_text(size)) for name, size in written.files.items()],
    )
    loader = (
        "sentence_transformers.SentenceTransformer"
        if MODULES in written.files
        else f"transformers.{written.loader or written.class_name}.from_pretrained"
    )
    options = ", trust_remote_code=True" if remote_code else ""
    say(
        f"\n{destination}: {written.parameters:,} parameters in {written.dtype} from {written.weights}\n"
        f'{loader}("{destination}"{options})'
    )
