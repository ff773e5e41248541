"""``zoo import``: the spec of a Hugging Face checkpoint."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options.options import AsJson, Force, Quiet, ReadAs
from cli.terminal.option_groups import MODEL

if TYPE_CHECKING:
    from specs.base.errors import UserError
    from specs.model.model import Model
    from zoo.checkpoints.source import CheckpointWeights
    from zoo.families.common.config import UnsupportedFieldsError

_LISTED = 10
_NOT_DEFINED = "Ignored fields that transformers does not define"


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
    family: ReadAs = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Refuse config fields that transformers does not define.",
            rich_help_panel=MODEL,
        ),
    ] = False,
    force: Force = False,
    quiet: Quiet = False,
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
    from cli.terminal.screen import Screen

    screen = Screen(False, quiet, as_json)
    from cli.options.default_directory import BUILD
    from cli.options.files import write_new
    from cli.tables.model_rows import title
    from cli.terminal.render import emit, print_json, say
    from cli.terminal.screen import doubtful, good
    from specs.forms.resolved import resolved
    from specs.language.reference import is_hub_id
    from specs.language.writing import dump
    from zoo.configs.importing import import_spec
    from zoo.core.progress import Stage
    from zoo.families.common.config import UnsupportedFieldsError, listed
    from zoo.weights.hub import located

    path = located(checkpoint, weights=False)
    name = name or (checkpoint.rpartition("/")[2] if is_hub_id(checkpoint) else None)
    passed_over: list[str] = []
    try:
        spec = import_spec(
            path, name=name, ignored=ignore or (), strict=strict, tell=passed_over.extend, family=family
        )
    except UnsupportedFieldsError as error:
        raise _with_remedy(error) from None
    matched = None
    if _has_weights(path):
        with screen.progress() as progress:
            progress(Stage("match the tensors"))
            spec, matched = _matched(spec, path)
    data = resolved(spec)
    if output is not None:
        write_new(output, dump(data), force, "--output")
    if as_json:
        target = None if output is None else str(output)
        print_json({"name": spec.name, "spec": data, "output": target, "ignored_fields": passed_over})
        return
    if output is None:
        emit(dump(data))
        if not quiet:
            counted = (
                "no weights to match"
                if matched is None
                else f"all {spec.expect.parameters:,} parameters found"
            )
            say(f"{spec.name}: {_class_of(path)}, {counted}", err=True)
            if passed_over:
                say(f"{_NOT_DEFINED}: {listed(passed_over)}\n  Pass --strict to refuse them.", err=True)
        return
    title(screen, spec)
    screen.row("class", _class_of(path))
    if family is not None:
        screen.row("read as", doubtful(f"{family}, as asked: its own type is unknown"))
    if matched is None:
        screen.row("params", doubtful("no weights beside the config to match"))
    else:
        screen.row("params", (f"{spec.expect.parameters:,}, ", good("every tensor found in the checkpoint")))
        if matched.ignored:
            screen.row("unused", f"{len(matched.ignored)} tensors: {listed(list(matched.ignored))}")
    if passed_over:
        screen.row(
            "fields", doubtful(f"{_NOT_DEFINED}: {listed(passed_over)}"), "Pass --strict to refuse them."
        )
    screen.done(f"{output} is ready")
    weights = [] if matched is None else ["--weights", str(path)]
    if (directory := BUILD / spec.name).exists() and directory.samefile(path):
        weights += ["-o", f"{directory}-onnx"]
    screen.next(
        (["build", str(output), *weights], "check, export and verify it"),
        (["report", str(output)], "sizes, FLOPs, memory"),
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


def _matched(spec: Model, path: Path) -> tuple[Model, CheckpointWeights]:
    """The spec with the parameter count of the checkpoint, and its weights, each matched with a parameter."""
    from specs.model.model import Expectation
    from zoo.builder import assemble
    from zoo.checkpoints.open import open_weights
    from zoo.checkpoints.source import CheckpointWeights

    model = assemble(spec)
    source = open_weights(str(path), model, spec)
    assert isinstance(source, CheckpointWeights)
    count = sum(parameter.numel() for parameter in model.parameters())
    return spec.model_copy(update={"expect": Expectation(parameters=count)}), source


def _class_of(path: Path) -> str:
    """The class that a checkpoint's config names, or else what the file is."""
    from zoo.families.common.config import CONFIG

    config = path / CONFIG if path.is_dir() else path
    if config.suffix != ".json":
        return "a GGUF file"
    named = json.loads(config.read_text("utf-8")).get("architectures")
    return str(named[0]) if named else f"a {CONFIG} that names no class"
