"""``zoo import``: the spec of a Hugging Face checkpoint."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options.options import AsJson, Force
from cli.terminal.option_groups import MODEL

if TYPE_CHECKING:
    from specs.base.errors import UserError
    from specs.model.model import Model
    from zoo.families.common.config import UnsupportedFieldsError

_LISTED = 10


def import_checkpoint(
    checkpoint: Annotated[
        str,
        typer.Argument(
            metavar="CHECKPOINT",
            help="Checkpoint directory, config.json, GGUF file, or Hugging Face repository (ORG/NAME).",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Output file.  [default: standard output]"),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Name of the spec.  [default: the directory's]", rich_help_panel=MODEL
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD",
            help="Ignore a config field that does not affect the computation; repeatable.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Refuse config fields that transformers does not define.",
            rich_help_panel=MODEL,
        ),
    ] = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Convert a checkpoint's config to a spec.

    If the checkpoint has weights, every tensor is matched with a parameter of the spec by name and shape. Fields that zoo
    does not model are refused, so that no import is approximate; fields that transformers does not define are reported and
    ignored.

    \b
    Examples:
      zoo import path/to/checkpoint -o my-llama.yaml
      zoo import path/to/config.json --name my-bert
      zoo import model.gguf -o my-llama.yaml
      zoo import meta-llama/Llama-3.2-1B -o my-llama.yaml
      zoo build my-llama.yaml --weights path/to/checkpoint
    """
    from cli.options.files import write_new
    from cli.terminal.render import emit, print_json, say
    from specs.forms.resolved import resolved
    from specs.language.reference import is_hub_id
    from specs.language.writing import dump
    from zoo.configs.importing import import_spec
    from zoo.families.common.config import UnsupportedFieldsError, listed
    from zoo.weights.hub import located

    path = located(checkpoint, weights=False)
    name = name or (checkpoint.rpartition("/")[2] if is_hub_id(checkpoint) else None)
    passed_over: list[str] = []
    try:
        spec = import_spec(path, name=name, ignored=ignore or (), strict=strict, tell=passed_over.extend)
    except UnsupportedFieldsError as error:
        raise _with_remedy(error) from None
    note = ""
    if _has_weights(path):
        spec, note = _matched(spec, path)
    data = resolved(spec)
    if output is not None:
        write_new(output, dump(data), force, "--output")
    if as_json:
        target = None if output is None else str(output)
        print_json({"spec": data, "output": target, "ignored_fields": passed_over})
        return
    if output is None:
        emit(dump(data))
    say(f"{spec.name}: {note or 'no weights to match'}", err=True)
    if passed_over:
        say(
            f"Ignored fields that transformers does not define: {listed(passed_over)}\n"
            "  Pass --strict to refuse them.",
            err=True,
        )


def _with_remedy(error: UnsupportedFieldsError) -> UserError:
    """The error with the --ignore options for its fields."""
    from specs.base.errors import UserError

    if len(error.fields) > _LISTED:
        return error
    options = " ".join(f"--ignore {shlex.quote(field)}" for field in error.fields)
    return UserError(f"{error.text}\n  If they do not affect the computation, pass {options}.")


def _has_weights(path: Path) -> bool:
    """Whether the checkpoint has weights: a file other than a config, or a directory with weight files."""
    from zoo.weights.names import has_weights

    return has_weights(os.listdir(path)) if path.is_dir() else path.suffix != ".json"


def _matched(spec: Model, path: Path) -> tuple[Model, str]:
    """The spec with the parameter count of the checkpoint, and a note about it."""
    from specs.model.model import Expectation
    from zoo.builder import assemble
    from zoo.checkpoints.open import open_weights

    model = assemble(spec)
    source = open_weights(str(path), model, spec)
    count = sum(parameter.numel() for parameter in model.parameters())
    counted = spec.model_copy(update={"expect": Expectation(parameters=count)})
    return counted, f"{count:,} parameters, all found in {source.description}"
