"""``zoo verify``: whether an exported directory still is what was proven."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options.export_options import complete_engine
from cli.options.options import AsJson, ExportDirectory, ProviderName, Quiet, Verbose
from cli.terminal.option_groups import ACTION, RUNS

if TYPE_CHECKING:
    from cli.terminal.screen import Screen
    from exporters.remotes.signing.signature import SignatureCheck


def verify(
    directory: ExportDirectory,
    provider: ProviderName = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            metavar="NAME",
            help="Run the recorded case on this engine, or compile the graphs with it (zoo engines lists them).",
            autocompletion=complete_engine,
            show_default=False,
            rich_help_panel=RUNS,
        ),
    ] = None,
    pytorch: Annotated[
        bool,
        typer.Option(
            "--pytorch",
            help="Compare all cases with PyTorch again, on the weights of the files.",
            rich_help_panel=RUNS,
        ),
    ] = False,
    key: Annotated[
        Path | None,
        typer.Option(
            "--key",
            metavar="PEM",
            help="Public key that must have signed the files with zoo sign.",
            show_default=False,
            rich_help_panel=ACTION,
        ),
    ] = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Verify an export where it is deployed.

    The files are compared with their recorded digests; then ONNX Runtime runs a recorded case, whose outputs must be those
    that were proven equal to PyTorch's. This needs neither PyTorch nor the spec: python -m zoo.record.certificate DIR does it with
    only onnxruntime and numpy installed, and the module can be copied into a deployment.

    Exit status: 0 the files are as proven, 1 they are not or nothing could be run, 2 the directory is not an export.

    \b
    Examples:
      zoo verify build/gpt2
      zoo verify build/gpt2 --provider cuda
      zoo verify build/gpt2 --engine onnxruntime-1.24.1
      zoo verify build/gpt2 --key public.pem
      zoo verify build/gpt2 --pytorch
    """
    from cli.terminal.screen import Screen

    screen = Screen(verbose, quiet, as_json)
    from cli.tables.verification_rows import certificate_rows, signature_row, unproven_text
    from cli.terminal.exit_status import FAILED
    from cli.terminal.render import print_json
    from cli.terminal.screen import bad, good
    from specs.base.errors import UserError
    from zoo.record.manifest import read_record

    if provider is not None and engine is not None:
        raise UserError(
            "--provider and --engine are mutually exclusive: an engine has its own provider.\n  Remove one of them."
        )
    if provider is not None and pytorch:
        raise UserError(
            "--provider and --pytorch are mutually exclusive: the cases run on the providers of the export's target.\n"
            "  Remove one of them."
        )
    read_record(directory)
    signature = None
    if key is not None:
        from exporters.remotes.signing.signature import check_signature

        signature = check_signature(directory, key)
    if pytorch:
        _verify_again(screen, directory, engine, key, signature)
        return
    from zoo.record.certificate import PROVIDERS, certify

    shown_by = None
    try:
        if engine is not None:
            from exporters.verification.engines.replay import replay
            from exporters.verification.engines.table import engine_named

            certificate, shown_by = replay(directory, engine_named(engine))
        elif provider is None or provider in PROVIDERS:
            certificate = certify(directory, provider)
        else:
            from exporters.verification.engines.replay import replay_on

            certificate = replay_on(directory, provider)
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{directory} cannot be verified: {error}\n  Export the model again.") from None
    if signature is not None and not signature.valid:
        certificate.faults.append(signature.fault)
    proven = certificate.passed if shown_by is None else shown_by.outcome in ("computed", "compiled")
    passed = proven and not certificate.faults
    errors = certificate.faults or ([] if passed else [unproven_text(certificate)])
    if as_json:
        print_json(
            {
                **{key: value for key, value in certificate.as_dict().items() if key != "faults"},
                "passed": passed,
                "errors": [{"message": error} for error in errors],
                "engine": None if shown_by is None else shown_by.as_dict(),
                "signature": None if signature is None else signature.as_dict(),
            }
        )
    else:
        screen.title(str(directory))
        if shown_by is not None:
            screen.fact("engine", (good if shown_by.passed else bad)(str(shown_by)))
        signature_row(screen, signature, key)
        certificate_rows(screen, certificate, proven)
    if not passed:
        raise typer.Exit(FAILED)


def _verify_again(
    screen: Screen, directory: Path, engine: str | None, key: Path | None, signature: SignatureCheck | None
) -> None:
    """Compare the graphs with PyTorch again."""
    from cli.tables.verification_rows import failures_again, signature_row, verified_again
    from cli.terminal.exit_status import FAILED
    from cli.terminal.render import print_json
    from exporters.exported.verify_export import verify_export

    screen.title(str(directory))
    with screen.progress() as progress:
        shown = verify_export(directory, progress, engines=() if engine is None else (engine,))
    failures = failures_again(shown, signature)
    if screen.as_json:
        data = {key: value for key, value in shown.as_dict().items() if key != "fault"}
        errors = [{"message": failure} for failure, _ in failures]
        print_json(
            {
                **data,
                "passed": not failures,
                "errors": errors,
                "signature": None if signature is None else signature.as_dict(),
            }
        )
    else:
        signature_row(screen, signature, key)
        verified_again(screen, shown, failures)
    if failures:
        raise typer.Exit(FAILED)
