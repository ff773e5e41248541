"""``zoo export``: verified ONNX files of a spec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cli.options.export_options import ExportFlags, Output
from cli.options.options import Assignments, Name, ReadAs, SpecArgument
from cli.terminal.screen import Screen

if TYPE_CHECKING:
    from pathlib import Path

    from cli.terminal.screen import Screen
    from exporters.steps.advice import Advice
    from exporters.steps.manifest import Export
    from exporters.steps.options import ExportOptions
    from specs.base.errors import UserError
    from specs.model.model import Model


def export(
    spec: SpecArgument,
    assignments: Assignments = None,
    name: Name = None,
    family: ReadAs = None,
    output: Output = None,
    *,
    options: ExportFlags,
    screen: Screen,
) -> None:
    """Export a model to ONNX and verify the files.

    Compares ONNX Runtime with PyTorch. If real weights are rounded, the result is also compared with the float model on
    representative inputs; nothing is written if it exceeds the error budget of the precision.

    Encoders and decoders become model.onnx; encoder-decoders become encoder_model.onnx and decoder_model.onnx. The weights
    are in model.onnx.data. Decoders have KV-cache inputs and outputs. The directory appears only after verification, and
    also holds the spec and a report, export.json.

    \b
    Examples:
      zoo export gpt2
      zoo export my-bert.yaml --weights path/to/checkpoint -o bert
      zoo export smollm2-135m --target cpu --precision int4 --logits last
      zoo export path/to/checkpoint --target cpu --layout genai
      zoo export HuggingFaceTB/SmolLM2-135M --target cpu --precision int8
      zoo export model.gguf --precision int4 --calibrate book.txt
    """
    from dataclasses import asdict

    from cli.options.default_directory import export_directory
    from cli.options.given import with_set
    from cli.tables.model_rows import read_as_row, title
    from cli.terminal.render import print_json
    from exporters.steps.options import ExportOptions
    from zoo.configs.named_model import named_model

    named = named_model(spec, assignments or (), name, family)
    model_spec = named.spec
    weights = named.weights(options.get("weights"))
    checked = ExportOptions(**{**options, "weights": weights})
    destination = output or export_directory(model_spec.name, checked)
    written = run_export(screen, model_spec, destination, checked)
    title(screen, model_spec)
    read_as_row(screen, named)
    changes = advice_on(model_spec, written, checked)
    if screen.as_json:
        advised = [asdict(change) for change in changes]
        about = {"name": model_spec.name, "passed": True, "directory": str(written.directory)}
        print_json({**about, **written.as_dict(), "advice": advised})
    else:
        show_export(
            screen,
            model_spec,
            written,
            checked,
            ["export", *with_set(spec, assignments, name, family)],
            output,
            changes,
            named.own_weights,
        )


def show_export(
    screen: Screen,
    spec: Model,
    written: Export,
    options: ExportOptions,
    command: list[str],
    output: Path | None,
    changes: list[Advice],
    own_weights: str | None,
) -> None:
    """Print what was written, how it was verified, and what to do with it; ``command`` is the one that wrote it."""
    from cli.tables.export_rows import export_rows
    from cli.tables.export_tables import print_export
    from cli.tables.next_steps import export_steps

    export_rows(screen, written, changes)
    if screen.tables:
        print_export(written, changes)
    screen.done(f"{written.directory} is ready")
    screen.next(*export_steps(command, spec, written, options, output, own_weights, screen.tables))


def advice_on(spec: Model, written: Export, options: ExportOptions) -> list[Advice]:
    """The changes of one line that would fuse what the export left unfused."""
    from exporters.steps.advice import advice

    unfused = any(graph.unfused for graph in written.manifest.graphs.values())
    return advice(spec, options) if unfused else []


def run_export(screen: Screen, spec: Model, destination: Path, options: ExportOptions) -> Export:
    """Export with a live line; exit with status 1 on a failed check or verification, an invalid graph or an exceeded budget."""
    import typer

    from cli.terminal.exit_status import FAILED
    from cli.terminal.render import print_json
    from exporters.export import export as export_files
    from exporters.graph.checking import InvalidGraphError
    from exporters.quality.quality import QualityError
    from exporters.verification.module_checks import BehaviourError
    from exporters.verification.result import VerificationError
    from specs.base.errors import with_flags

    try:
        with screen.progress() as progress:
            return export_files(spec, destination, options, progress)
    except (BehaviourError, VerificationError, QualityError, InvalidGraphError) as error:
        text = with_flags(error.text)
        if screen.as_json:
            print_json(
                {"name": spec.name, "passed": False, "errors": [{"message": text}], **_evidence(error)}
            )
        else:
            _show_evidence(screen, error)
            budget = (
                "\n  Raise the budget with --max-kl or --min-cosine."
                if isinstance(error, QualityError)
                else ""
            )
            screen.failed(f"{text}{budget}\nNothing was written.")
        raise typer.Exit(FAILED) from None


def _evidence(error: UserError) -> dict[str, Any]:
    """The evidence of a failed export, as JSON data."""
    from exporters.quality.quality import QualityError
    from exporters.verification.module_checks import BehaviourError
    from exporters.verification.result import VerificationError

    if isinstance(error, BehaviourError):
        return {"behaviour": error.report.as_dict()}
    if isinstance(error, QualityError):
        return {"quality": error.quality.as_dict()}
    return {"verification": error.verification.as_dict() if isinstance(error, VerificationError) else None}


def _show_evidence(screen: Screen, error: UserError) -> None:
    """Print the evidence of a failed export: a row, or its tables."""
    from cli.tables.check_tables import print_behaviour
    from cli.tables.export_rows import quality_line, verification_row
    from cli.tables.export_tables import print_verification
    from cli.tables.model_rows import behaviour_row
    from cli.tables.quality_tables import print_quality
    from exporters.quality.quality import QualityError
    from exporters.verification.module_checks import BehaviourError
    from exporters.verification.result import VerificationError

    if isinstance(error, BehaviourError):
        behaviour_row(screen, error.report)
        if screen.tables:
            print_behaviour(error.report)
    elif isinstance(error, VerificationError):
        verification_row(screen, error.verification)
        if screen.tables:
            print_verification(error.verification)
    elif isinstance(error, QualityError):
        screen.row("quality", quality_line(error.quality))
        if screen.tables:
            print_quality(error.quality)
