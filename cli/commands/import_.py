"""``zoo import``: the spec of a Hugging Face checkpoint."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options.options import Force, ReadAs
from cli.terminal.option import AsJson, Quiet, option, switch
from cli.terminal.option_groups import MODEL, OUTPUT
from cli.terminal.screen import Screen

if TYPE_CHECKING:
    from specs.base.errors import UserError
    from specs.model.model import Model
    from zoo.checkpoints.source import CheckpointWeights
    from zoo.families.common.config_errors import UnsupportedFieldsError

_LISTED = 10
_NOT_DEFINED = "Ignored fields that transformers does not define"


@dataclass(frozen=True)
class ImportOptions:
    """The options of ``zoo import``."""

    output: Annotated[
        Path | None, option("FILE", "Output file.  [default: standard output]", OUTPUT, "--output", "-o")
    ] = None
    name: Annotated[str | None, option("NAME", "Name of the spec.  [default: the directory's]", MODEL)] = None
    ignore: Annotated[
        list[str] | None,
        option("FIELD", "Ignore a config field that does not affect the computation; repeatable.", MODEL),
    ] = None
    family: ReadAs = None
    strict: Annotated[
        bool, switch("--strict", "Refuse config fields that transformers does not define.", MODEL)
    ] = False
    force: Force = False
    quiet: Quiet = False
    as_json: AsJson = False


def import_checkpoint(
    checkpoint: Annotated[
        str,
        typer.Argument(
            metavar="CHECKPOINT",
            help="Checkpoint directory, config.json, GGUF file, or Hugging Face repository (ORG/NAME).",
        ),
    ],
    options: ImportOptions,
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
    screen = Screen(False, options.quiet, options.as_json)
    from cli.options.files import write_new
    from cli.tables.model_rows import title
    from cli.terminal.render import emit, print_json
    from cli.terminal.screen import doubtful
    from specs.forms.resolved import resolved
    from specs.language.writing import dump
    from zoo.core.progress import Stage

    path, spec, passed_over = _read(checkpoint, options)
    matched = None
    if _has_weights(path):
        with screen.progress() as progress:
            progress(Stage("match the tensors"))
            spec, matched = _matched(spec, path)
    data = resolved(spec)
    if options.output is not None:
        write_new(options.output, dump(data), options.force, "--output")
    if options.as_json:
        target = None if options.output is None else str(options.output)
        print_json({"name": spec.name, "spec": data, "output": target, "ignored_fields": passed_over})
        return
    if options.output is None:
        emit(dump(data))
        if not options.quiet:
            _say_import(spec, path, matched, passed_over)
        return
    title(screen, spec)
    screen.row("class", _class_of(path))
    if options.family is not None:
        screen.row("read as", doubtful(f"{options.family}, as asked"))
    _print_match(screen, spec, matched, passed_over)
    screen.done(f"{options.output} is ready")
    _print_steps(screen, str(options.output), [] if matched is None else _weights_of(spec, path))


def _print_steps(screen: Screen, output: str, weights: list[str]) -> None:
    """Print the commands that take the spec at ``output``, with the options of its weights."""
    screen.next(
        (["build", output, *weights], "check, export and verify it"),
        (["report", output], "sizes, FLOPs, memory"),
    )


def _read(checkpoint: str, options: ImportOptions) -> tuple[Path, Model, list[str]]:
    """The path of a checkpoint, the spec of its config, and the fields that were ignored."""
    from specs.language.reference import is_hub_id
    from zoo.configs.importing import import_spec
    from zoo.families.common.config_errors import UnsupportedFieldsError
    from zoo.weights.hub import located

    path = located(checkpoint, weights=False)
    name = options.name or (checkpoint.rpartition("/")[2] if is_hub_id(checkpoint) else None)
    ignored: list[str] = []
    try:
        spec = import_spec(
            path,
            name=name,
            ignored=options.ignore or (),
            strict=options.strict,
            tell=ignored.extend,
            family=options.family,
        )
    except UnsupportedFieldsError as error:
        raise _with_remedy(error) from None
    return path, spec, ignored


def _weights_of(spec: Model, path: Path) -> list[str]:
    """The options of ``zoo build`` for the weights at a path, and for another directory if that is the usual one."""
    from cli.options.default_directory import BUILD

    directory = BUILD / spec.name
    elsewhere = ["-o", f"{directory}-onnx"] if directory.exists() and directory.samefile(path) else []
    return ["--weights", str(path), *elsewhere]


def _say_import(
    spec: Model, path: Path, matched: CheckpointWeights | None, passed_over: Sequence[str]
) -> None:
    """Print about an import on standard error: its class, the match of the tensors, and ignored fields."""
    from cli.terminal.render import say
    from zoo.families.common.config_errors import listed

    counted = "no weights to match" if matched is None else f"all {spec.expect.parameters:,} parameters found"
    say(f"{spec.name}: {_class_of(path)}, {counted}", err=True)
    if passed_over:
        say(f"{_NOT_DEFINED}: {listed(passed_over)}\n  Pass --strict to refuse them.", err=True)


def _print_match(
    screen: Screen, spec: Model, matched: CheckpointWeights | None, passed_over: Sequence[str]
) -> None:
    """Print the match of the tensors of an import, and ignored fields."""
    from cli.terminal.screen import doubtful, good
    from zoo.families.common.config_errors import listed

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


def _with_remedy(error: UnsupportedFieldsError) -> UserError:
    """The error with the --ignore options for its fields."""
    from specs.base.errors import UserError

    if len(error.fields) > _LISTED:
        return error
    options = " ".join(f"--ignore {shlex.quote(field)}" for field in error.fields)
    return UserError(f"{error.text}\n  If they do not affect the computation, pass {options}.")


def _has_weights(path: Path) -> bool:
    """Whether the checkpoint has weights: a file other than a config, or a directory with weight files."""
    from zoo.weights.modules import body_directory
    from zoo.weights.names import has_weights

    return has_weights(os.listdir(body_directory(path))) if path.is_dir() else path.suffix != ".json"


def _matched(spec: Model, path: Path) -> tuple[Model, CheckpointWeights]:
    """The spec with the parameter count of the checkpoint, and its weights, each matched with a parameter."""
    from specs.model.model import Expectation
    from zoo.builder import assemble
    from zoo.checkpoints.open_weights import open_weights
    from zoo.checkpoints.source import CheckpointWeights

    model = assemble(spec)
    source = open_weights(str(path), model, spec)
    assert isinstance(source, CheckpointWeights)
    count = sum(parameter.numel() for parameter in model.parameters())
    return spec.model_copy(update={"expect": Expectation(parameters=count)}), source


def _class_of(path: Path) -> str:
    """The class that a checkpoint's config names, or else what the file is."""
    from zoo.configs.spans import gliner_config
    from zoo.families.common.config import CONFIG
    from zoo.weights.modules import body_directory

    if gliner_config(path) is not None:
        return "a model of GLiNER"
    config = body_directory(path) / CONFIG if path.is_dir() else path
    if config.suffix != ".json":
        return "a GGUF file"
    named = json.loads(config.read_text("utf-8")).get("architectures")
    return str(named[0]) if named else f"a {CONFIG} that names no class"
