"""``zoo export``: verified ONNX files of a spec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cli.options.export_options import ExportFlags, Output
from cli.options.options import Assignments, Name, ReadAs, SpecArgument
from cli.terminal.screen import Screen

if TYPE_CHECKING:
    from pathlib import Path

    from exporters.steps.advice import Advice
    from exporters.steps.manifest import Export
    from exporters.steps.options import ExportOptions
    from specs.base.errors import UserError
    from zoo.configs.named_model import NamedModel


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

    from cli.options.given import with_set
    from cli.tables.model_rows import read_as_row, title
    from cli.terminal.render import print_json
    from zoo.configs.named_model import named_model

    named = named_model(spec, assignments or (), name, family)
    requested = RequestedExport.of(
        named, options, output, ["export", *with_set(spec, assignments, name, family)]
    )
    written = requested.write(screen)
    title(screen, named.spec)
    read_as_row(screen, named)
    if screen.as_json:
        advised = [asdict(change) for change in requested.advice(written)]
        about = {"name": named.spec.name, "passed": True, "directory": str(written.directory)}
        print_json({**about, **written.as_dict(), "advice": advised})
    else:
        requested.show(screen, written)


@dataclass(frozen=True)
class RequestedExport:
    """The export that a command line asks for; ``command`` repeats it, without its options and ``output``."""

    named: NamedModel
    options: ExportOptions
    destination: Path
    command: list[str]
    output: Path | None

    @staticmethod
    def of(named: NamedModel, flags: ExportFlags, output: Path | None, command: list[str]) -> RequestedExport:
        """Check the flags, and find the directory.  Raises :class:`specs.base.errors.UserError`."""
        from cli.options.default_directory import export_directory
        from exporters.steps.options import ExportOptions

        options = ExportOptions(**{**flags, "weights": named.weights(flags.get("weights"))})
        return RequestedExport(
            named, options, output or export_directory(named.spec.name, options), command, output
        )

    def advice(self, written: Export) -> list[Advice]:
        """The changes of one line that would fuse what the export left unfused."""
        from exporters.steps.advice import advice

        unfused = any(graph.unfused for graph in written.manifest.graphs.values())
        return advice(self.named.spec, self.options) if unfused else []

    def show(self, screen: Screen, written: Export) -> None:
        """Print what was written, how it was verified, and what to do with it."""
        from cli.tables.export_rows import export_rows
        from cli.tables.export_tables import print_export
        from cli.tables.next_steps import export_steps

        changes, named = self.advice(written), self.named
        export_rows(screen, written, changes)
        if screen.tables:
            print_export(written, changes)
        screen.done(f"{written.directory} is ready")
        screen.next(
            *export_steps(
                self.command, named.spec, written, self.options, self.output, named.own_weights, screen.tables
            )
        )

    def write(self, screen: Screen) -> Export:
        """Export with a live line.

        Exits with status 1 on a failed check or verification, an invalid graph or an exceeded budget.
        """
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
                return export_files(self.named.spec, self.destination, self.options, progress)
        except (BehaviourError, VerificationError, QualityError, InvalidGraphError) as error:
            text = with_flags(error.text)
            if screen.as_json:
                print_json(
                    {
                        "name": self.named.spec.name,
                        "passed": False,
                        "errors": [{"message": text}],
                        **error.evidence,
                    }
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
