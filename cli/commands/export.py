"""``zoo export``: verified ONNX files of a spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cli.options.export_options import Output, with_export_options
from cli.options.options import AsJson, Assignments, Name, SpecArgument

if TYPE_CHECKING:
    from pathlib import Path

    from exporters.steps.advice import Advice
    from exporters.steps.manifest import Export
    from exporters.steps.options import ExportOptions
    from specs.model.model import Model


@with_export_options
def export(
    spec: SpecArgument,
    assignments: Assignments = None,
    name: Name = None,
    output: Output = None,
    *,
    options: Mapping[str, Any],
    as_json: AsJson = False,
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
    from cli.options.weights import chosen_weights
    from cli.tables.export_tables import print_export
    from cli.terminal.render import print_json
    from exporters.steps.options import ExportOptions
    from zoo.configs.named_model import named_model

    named = named_model(spec, assignments or (), name)
    model_spec = named.spec
    weights = chosen_weights(named, options.get("weights"), quiet=as_json)
    checked = ExportOptions(**{**options, "weights": weights})
    destination = output or export_directory(model_spec.name, checked)
    written = run_export(model_spec, destination, checked, as_json)
    changes = advice_on(model_spec, written, checked)
    if as_json:
        advised = [asdict(change) for change in changes]
        print_json({"directory": str(written.directory), **written.as_dict(), "advice": advised})
    else:
        print_export(written, changes)


def advice_on(spec: Model, written: Export, options: ExportOptions) -> list[Advice]:
    """The changes of one line that would fuse what the export left unfused."""
    from exporters.steps.advice import advice

    unfused = any(graph.unfused for graph in written.manifest.graphs.values())
    return advice(spec, options) if unfused else []


def run_export(spec: Model, destination: Path, options: ExportOptions, as_json: bool) -> Export:
    """Export with a progress bar; exit with status 1 on a failed check or verification, an invalid graph or an exceeded budget."""
    import typer

    from cli.tables.check_tables import print_behaviour
    from cli.tables.export_tables import print_verification
    from cli.tables.quality_tables import print_quality
    from cli.terminal.exit_status import FAILED
    from cli.terminal.progress import stage_progress
    from cli.terminal.render import print_json, say
    from exporters.export import export as export_files
    from exporters.graph.checking import InvalidGraphError
    from exporters.quality.quality import QualityError
    from exporters.verification.module_checks import BehaviourError
    from exporters.verification.result import VerificationError
    from specs.base.errors import with_flags

    try:
        with stage_progress(quiet=as_json) as progress:
            return export_files(spec, destination, options, progress)
    except BehaviourError as error:
        if as_json:
            print_json(
                {"name": spec.name, "error": with_flags(error.text), "behaviour": error.report.as_dict()}
            )
        else:
            print_behaviour(error.report)
            say(f"{with_flags(error.text)}\nNothing was written.", "red", err=True)
        raise typer.Exit(FAILED) from None
    except VerificationError as error:
        if as_json:
            print_json(
                {
                    "name": spec.name,
                    "error": with_flags(error.text),
                    "verification": error.verification.as_dict(),
                }
            )
        else:
            print_verification(error.verification)
            say(f"{with_flags(error.text)}\nNothing was written.", "red", err=True)
        raise typer.Exit(FAILED) from None
    except QualityError as error:
        if as_json:
            print_json(
                {"name": spec.name, "error": with_flags(error.text), "quality": error.quality.as_dict()}
            )
        else:
            print_quality(error.quality)
            say(
                f"{with_flags(error.text)}\n  Raise the budget with --max-kl or --min-cosine.\nNothing was written.",
                "red",
                err=True,
            )
        raise typer.Exit(FAILED) from None
    except InvalidGraphError as error:
        if as_json:
            print_json({"name": spec.name, "error": with_flags(error.text), "verification": None})
        else:
            say(f"{with_flags(error.text)}\nNothing was written.", "red", err=True)
        raise typer.Exit(FAILED) from None
