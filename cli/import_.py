"""``zoo import``: the spec of a Hugging Face checkpoint."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import AsJson

if TYPE_CHECKING:
    from specs.errors import UserError
    from specs.model import Model
    from zoo.configs.config import UnmodelledError

_LISTED = 10


def import_checkpoint(
    checkpoint: Annotated[
        str,
        typer.Argument(
            metavar="CHECKPOINT",
            help="A directory with a config.json, the config itself, a GGUF file, or a repository of the hub.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write the spec.  [default: stdout]",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The spec's name.  [default: the directory's]", show_default=False),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD",
            help="A field of the config that changes nothing that the model computes; repeatable.",
            show_default=False,
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Refuse fields that transformers does not have.", show_default=False),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the output file.", show_default=False)
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Read a checkpoint's config as a spec.

    Where the directory has weights, every tensor is matched with the spec's parameters, by name and shape. A field that
    is not modelled is refused: nothing is imported approximately. A field that transformers does not have either is
    reported and ignored.

    \b
    Examples:
      zoo import path/to/checkpoint -o my-llama.yaml
      zoo import path/to/config.json --name my-bert
      zoo import model.gguf -o my-llama.yaml
      zoo import meta-llama/Llama-3.2-1B -o my-llama.yaml
      zoo build my-llama.yaml --weights path/to/checkpoint
    """
    from cli.render import emit, print_json, say
    from specs.reference import is_hub_id
    from specs.resolved import resolved
    from specs.writing import dump
    from zoo.configs.config import UnmodelledError, listed
    from zoo.configs.importing import import_spec
    from zoo.hub import fetch

    path = fetch(checkpoint, weights=False) if is_hub_id(checkpoint) else Path(checkpoint)
    name = name or (checkpoint.rpartition("/")[2] if is_hub_id(checkpoint) else None)
    passed_over: list[str] = []
    try:
        spec = import_spec(path, name=name, ignored=ignore or (), strict=strict, tell=passed_over.extend)
    except UnmodelledError as error:
        raise _with_remedy(error) from None
    note = ""
    if _has_weights(path):
        spec, note = _matched(spec, path)
    data = resolved(spec)
    if output is not None:
        _write(output, dump(data), force)
    if as_json:
        target = None if output is None else str(output)
        print_json({"spec": data, "output": target, "ignored_fields": passed_over})
        return
    if output is None:
        emit(dump(data))
    say(f"{spec.name}: {note or 'no weights there to match'}", err=True)
    if passed_over:
        say(
            f"Ignored fields that transformers does not have: {listed(passed_over)}\n"
            "  Pass --strict to refuse them.",
            err=True,
        )


def _with_remedy(error: UnmodelledError) -> UserError:
    """The error with the options that pass over its fields."""
    from specs.errors import UserError

    if len(error.fields) > _LISTED:
        return error
    options = " ".join(f"--ignore {shlex.quote(field)}" for field in error.fields)
    return UserError(f"{error.text}\n  If they change nothing that the model computes, pass {options}")


def _has_weights(path: Path) -> bool:
    """Whether there are weights to match: a file that is no config, or a directory with such files."""
    from zoo.weights.names import has_weights

    return has_weights(os.listdir(path)) if path.is_dir() else path.suffix != ".json"


def _matched(spec: Model, path: Path) -> tuple[Model, str]:
    """The spec with the count of the parameters that the checkpoint was found to have."""
    from specs.model import Expectation
    from zoo.builder import assemble
    from zoo.checkpoints.open import open_weights

    model = assemble(spec)
    source = open_weights(str(path), model, spec)
    count = sum(parameter.numel() for parameter in model.parameters())
    counted = spec.model_copy(update={"expect": Expectation(parameters=count)})
    return counted, f"{count:,} parameters, all of them in {source.description}"


def _write(output: Path, text: str, force: bool) -> None:
    """Write a file whole or not at all."""
    from cli.files import write_whole
    from specs.errors import UserError

    if output.exists() and not force:
        raise UserError(f"{output} is there already\n  give another --output, or --force to replace it")
    write_whole(output, text.encode())
