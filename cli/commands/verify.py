"""``zoo verify``: whether an exported directory still is what was verified."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.options.export_options import complete_engine
from cli.options.options import AsJson, ExportDirectory, ProviderName, Quiet, Verbose
from cli.terminal.option_groups import ACTION, RUNS


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
    that were verified against PyTorch's. This needs neither PyTorch nor the spec: python -m zoo.record.certificate DIR does it with
    only onnxruntime and numpy installed, and the module can be copied into a deployment.

    Exit status: 0 the files are as verified, 1 they are not or nothing could be run, 2 the directory is not an export.

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
    from cli.tables.verification_rows import certificate_rows, verified_again
    from cli.terminal.exit_status import FAILED
    from cli.terminal.render import print_json
    from cli.terminal.screen import bad, good
    from specs.base.errors import UserError

    if pytorch:
        from exporters.exported.verify_export import verify_export

        screen.title(str(directory))
        with screen.progress() as progress:
            shown = verify_export(directory, progress, engines=() if engine is None else (engine,))
        if as_json:
            data = shown.as_dict()
            fault = data.pop("fault")
            print_json({**data, "errors": [{"message": fault}] if fault else []})
        else:
            verified_again(screen, shown)
        if not shown.passed:
            raise typer.Exit(FAILED)
        return
    from zoo.record.certificate import PROVIDERS, certify
    from zoo.record.manifest import read_record

    if provider is not None and engine is not None:
        raise UserError(
            "--provider and --engine exclude each other: an engine has its own provider.\n  Leave one out."
        )
    read_record(directory)
    signature = None
    if key is not None:
        from exporters.remotes.signing.signature import check_signature

        signature = check_signature(directory, key)
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
        certificate.faults.append(f"The signature does not hold: {signature.problem}")
    if as_json:
        print_json(
            {
                **{key: value for key, value in certificate.as_dict().items() if key != "faults"},
                "errors": [{"message": fault} for fault in certificate.faults],
                "engine": None if shown_by is None else shown_by.as_dict(),
                "signature": None if signature is None else signature.as_dict(),
            }
        )
    proven = certificate.passed if shown_by is None else shown_by.outcome in ("computed", "compiled")
    if not as_json:
        screen.title(str(directory))
        if shown_by is not None:
            screen.fact("engine", (good if shown_by.passed else bad)(str(shown_by)))
        if signature is not None and signature.valid:
            screen.fact("signed", f"with the key of {key}: {len(signature.files)} files")
        certificate_rows(screen, certificate, proven)
    if not proven or certificate.faults:
        raise typer.Exit(FAILED)
