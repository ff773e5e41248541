"""``zoo verify``: whether an exported directory still is what was proven."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options.export_options import complete_engine
from cli.options.options import AsJson, ExportDirectory, ProviderName, Quiet, Verbose
from cli.terminal.option_groups import ACTION, RUNS

if TYPE_CHECKING:
    from cli.terminal.screen import Screen
    from exporters.verification.engines.result import EngineResult
    from zoo.record.certificate import Certificate


def verify(
    directory: ExportDirectory,
    provider: ProviderName = None,
    engines: Annotated[
        list[str] | None,
        typer.Option(
            "--engine",
            metavar="NAME",
            help="Run the recorded case on this engine, or compile the graphs with it (zoo engines lists them); repeatable.",
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
      zoo verify build/gpt2 --engine openvino --engine onnxruntime-1.24.1
      zoo verify build/gpt2 --key public.pem
      zoo verify build/gpt2 --pytorch
    """
    from cli.terminal.screen import Screen
    from specs.base.errors import UserError

    screen = Screen(verbose, quiet, as_json)
    names = tuple(dict.fromkeys(engines or ()))
    if provider is not None and names:
        raise UserError(
            "--provider and --engine exclude each other: an engine has its own provider.\n  Leave one out."
        )
    if pytorch and (unused := "--provider" if provider is not None else "--key" if key is not None else None):
        raise UserError(f"--pytorch and {unused} exclude each other.\n  Verify twice, once with each.")
    passed = (
        _compared_with_pytorch(screen, directory, names)
        if pytorch
        else _replayed(screen, directory, provider, names, key)
    )
    if not passed:
        from cli.terminal.exit_status import FAILED

        raise typer.Exit(FAILED)


def _compared_with_pytorch(screen: Screen, directory: Path, engines: Sequence[str]) -> bool:
    """Compare all cases with PyTorch, print the result, and return whether it passed."""
    from cli.tables.verification_rows import verified_again
    from cli.terminal.render import print_json
    from exporters.exported.verify_export import verify_export

    screen.title(str(directory))
    with screen.progress() as progress:
        shown = verify_export(directory, progress, engines=engines)
    if screen.as_json:
        data = shown.as_dict()
        fault = data.pop("fault")
        print_json({**data, "errors": [{"message": fault}] if fault else []})
    else:
        verified_again(screen, shown)
    return shown.passed


def _replayed(
    screen: Screen, directory: Path, provider: str | None, engines: Sequence[str], key: Path | None
) -> bool:
    """Run the recorded case on a provider or on engines, print the result, and return whether it passed."""
    from cli.tables.verification_rows import certificate_rows, engine_rows
    from cli.terminal.render import print_json
    from specs.base.errors import UserError
    from zoo.record.certificate import PROVIDERS, certify
    from zoo.record.manifest import read_record

    read_record(directory)
    signature = None
    if key is not None:
        from exporters.remotes.signing.signature import check_signature

        signature = check_signature(directory, key)
    replays: list[tuple[Certificate, EngineResult]] = []
    try:
        if engines:
            from exporters.verification.engines.replay import joined, replay_all

            replays = replay_all(directory, engines)
            certificate = joined(replays)
        elif provider is None or provider in PROVIDERS:
            certificate = certify(directory, provider)
        else:
            from exporters.verification.engines.replay import replay_on

            certificate = replay_on(directory, provider)
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{directory} cannot be verified: {error}\n  Export the model again.") from None
    if signature is not None and not signature.valid:
        certificate.faults.append(f"The signature does not hold: {signature.problem}")
    ran = all(result.shown for _, result in replays) if replays else bool(certificate.outputs)
    passed = ran and not certificate.faults
    if screen.as_json:
        print_json(
            {
                **{name: value for name, value in certificate.as_dict().items() if name != "faults"},
                "passed": passed,
                "errors": [{"message": fault} for fault in certificate.faults],
                "engines": [{**result.as_dict(), "outputs": each.outputs} for each, result in replays],
                "signature": None if signature is None else signature.as_dict(),
            }
        )
        return passed
    screen.title(str(directory))
    engine_rows(screen, replays)
    if signature is not None and signature.valid:
        screen.fact("signed", f"with the key of {key}: {len(signature.files)} files")
    certificate_rows(screen, certificate, ran, on_engines=bool(replays))
    return passed
