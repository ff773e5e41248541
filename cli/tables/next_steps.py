"""Commands that a screen proposes, each of which works as printed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from specs.base.errors import option_name, with_flags
from specs.files.export_options import OptionTable, default_of

if TYPE_CHECKING:
    from cli.terminal.screen import Step
    from exporters.steps.manifest import Export
    from exporters.steps.options import ExportOptions
    from specs.model.model import Model

_TOKENIZER = "tokenizer.json"
_SMALLER = {"target": "cpu", "precision": "int8"}
_FEWEST_TOKENS = 4


def export_arguments(options: OptionTable, own_weights: str | None) -> list[str]:
    """The command-line arguments of the options that are not at their defaults; a checkpoint has weights of its own."""
    arguments = []
    for name, value in options:
        if value == (own_weights if own_weights and name == "weights" else default_of(name)):
            continue
        flag = with_flags(option_name(name))
        if isinstance(value, bool):
            arguments.append(flag if value else with_flags(option_name(name, False)))
        else:
            values = value if isinstance(value, tuple) else (value,)
            arguments += [part for item in values for part in (flag, str(item))]
    return arguments


def export_steps(
    command: list[str],
    spec: Model,
    written: Export,
    options: ExportOptions,
    output: Path | None,
    own_weights: str | None,
    verbose: bool,
) -> Iterator[Step]:
    """Run the export, print all tables of the ``command`` that wrote it, and export it smaller."""
    flags = export_arguments(options, own_weights)
    yield from trial(spec, written, options, written.directory)
    if not verbose:
        placed = [] if output is None else ["-o", str(output)]
        yield (
            [*command, *flags, *placed, "-v"],
            "all tables",
        )
    if options.weights != "none" and _can_be_smaller(spec, options, written.directory):
        smaller = export_arguments(options.changed(**_SMALLER), own_weights)
        yield [*command, *smaller], "smaller and faster"


def trial(spec: Model, written: Export, options: ExportOptions, directory: Path) -> Iterator[Step]:
    """Run the export at ``directory``, or verify it where a run needs files; report one that has no weights or does not run here."""
    if options.weights == "none" or not _runs_here(written.manifest.providers):
        yield ["report", str(directory)], "parameters, sizes, FLOPs"
    elif (inputs := _inputs(spec, written)) is not None:
        yield ["run", str(directory), *inputs], "try it"
    elif written.build.probe is not None:
        yield ["verify", str(directory)], "where it is deployed"


def _runs_here(providers: tuple[str, ...]) -> bool:
    """Whether this machine has a provider for an export."""
    from exporters.target.providers import CPU, present

    return CPU in providers or present(providers) != [CPU]


def _inputs(spec: Model, written: Export) -> list[str] | None:
    """The options of a run that needs no other files; None where every run does, or none is possible."""
    if spec.decodes and not spec.head.predicts_next:
        return None
    if spec.reads_hidden_states:
        return None
    name = spec.embedding_of(spec.first_stack).input_name
    clients = ("optimum", "transformers-js")
    if name != "input_ids" or spec.architecture in ("dual-encoder", "vision-language"):
        return None
    if spec.architecture == "encoder-decoder" and written.manifest.layout in clients:
        return None
    if spec.head.kind == "masked_language_modeling":
        return None
    if (written.directory / _TOKENIZER).is_file():
        labels = [] if spec.head.span_width is None else ["--labels", "place,time"]
        return [*labels, "--text", "The zoo opens at"]
    return ["--ids", "1,2,3"] if (spec.vocab_size or 0) >= _FEWEST_TOKENS else None


def _can_be_smaller(spec: Model, options: ExportOptions, directory: Path) -> bool:
    """Whether the same export exists in int8 for processors, and is not this one."""
    from exporters.steps.request import Request
    from specs.base.errors import UserError

    if options.precision != "fp32" or options.target != "portable" or options.layout != "onnx":
        return False
    try:
        Request.of_spec(spec, options.changed(**_SMALLER), directory)
    except UserError:
        return False
    return True
