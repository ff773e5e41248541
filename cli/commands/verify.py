"""``zoo verify``: whether an exported directory is still as it was verified."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options.export_options import complete_engine
from cli.options.options import ExportDirectory, ProviderName
from cli.terminal.option import option, switch
from cli.terminal.option_groups import ACTION, RUNS
from cli.terminal.screen import Screen

if TYPE_CHECKING:
    from cli.terminal.screen import Screen
    from exporters.remotes.signing.signature import SignatureCheck
    from exporters.verification.engines.result import EngineResult
    from zoo.record.certificate import Certificate


def verify(
    directory: ExportDirectory,
    provider: ProviderName = None,
    engines: Annotated[
        list[str] | None,
        option(
            "NAME",
            "Run the recorded case on this engine, or compile the graphs with it (zoo engines lists them); repeatable.",
            RUNS,
            "--engine",
            autocompletion=complete_engine,
        ),
    ] = None,
    pytorch: Annotated[
        bool, switch("--pytorch", "Compare all cases with PyTorch again, on the weights of the files.", RUNS)
    ] = False,
    key: Annotated[
        Path | None,
        option("PEM", "Public key that must have signed the files with zoo sign.", ACTION, "--key"),
    ] = None,
    *,
    screen: Screen,
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
      zoo verify build/gpt2 --engine openvino --engine onnxruntime-1.24.1
      zoo verify build/gpt2 --key public.pem
      zoo verify build/gpt2 --pytorch
    """
    names = tuple(dict.fromkeys(engines or ()))
    _check_provider(provider, names, pytorch=pytorch)
    signature = _checked_signature(directory, key)
    passed = (
        _compared_with_pytorch(screen, directory, names, key, signature)
        if pytorch
        else _replayed(screen, directory, provider, names, key, signature)
    )
    if not passed:
        from cli.terminal.exit_status import FAILED

        raise typer.Exit(FAILED)


def _check_provider(provider: str | None, engines: Sequence[str], *, pytorch: bool) -> None:
    """Raise :class:`specs.base.errors.UserError` for a provider where the engines or the target have their own."""
    from specs.base.errors import UserError

    if provider is not None and engines:
        raise UserError(
            "--provider and --engine are mutually exclusive: an engine has its own provider.\n  Remove one of them."
        )
    if provider is not None and pytorch:
        raise UserError(
            "--provider and --pytorch are mutually exclusive: the cases run on the providers of the export's target.\n"
            "  Remove one of them."
        )


def _checked_signature(directory: Path, key: Path | None) -> SignatureCheck | None:
    """The check of the signature by a key, if there is one, of a directory that has to be an export."""
    from zoo.record.manifest import read_record

    read_record(directory)
    if key is None:
        return None
    from exporters.remotes.signing.signature import check_signature

    return check_signature(directory, key)


def _compared_with_pytorch(
    screen: Screen,
    directory: Path,
    engines: Sequence[str],
    key: Path | None,
    signature: SignatureCheck | None,
) -> bool:
    """Compare all cases with PyTorch, print the result, and return whether it passed."""
    from cli.tables.verification_rows import failures_again, signature_row, verified_again
    from cli.terminal.render import print_json
    from exporters.exported.verify_export import verify_export

    screen.title(str(directory))
    with screen.progress() as progress:
        shown = verify_export(directory, progress, engines=engines)
    failures = failures_again(shown, signature)
    if screen.as_json:
        print_json(
            {
                **{name: value for name, value in shown.as_dict().items() if name != "fault"},
                "passed": not failures,
                "errors": [{"message": failure} for failure, _ in failures],
                "signature": None if signature is None else signature.as_dict(),
            }
        )
    else:
        signature_row(screen, signature, key)
        verified_again(screen, shown, failures)
    return not failures


def _replayed(
    screen: Screen,
    directory: Path,
    provider: str | None,
    engines: Sequence[str],
    key: Path | None,
    signature: SignatureCheck | None,
) -> bool:
    """Run the recorded case on a provider or on engines, print the result, and return whether it passed."""
    from cli.tables.verification_rows import certificate_rows, engine_rows, signature_row, unproven_text
    from cli.terminal.render import print_json
    from specs.base.errors import UserError
    from zoo.record.certificate import PROVIDERS, certify

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
        certificate.faults.append(signature.fault)
    ran = all(result.shown for _, result in replays) if replays else bool(certificate.outputs)
    passed = ran and not certificate.faults
    errors = certificate.faults or ([] if passed else [unproven_text(certificate)])
    if screen.as_json:
        print_json(
            {
                **{name: value for name, value in certificate.as_dict().items() if name != "faults"},
                "passed": passed,
                "errors": [{"message": error} for error in errors],
                "engines": [
                    {**result.as_dict(), "outputs": replayed.outputs} for replayed, result in replays
                ],
                "signature": None if signature is None else signature.as_dict(),
            }
        )
        return passed
    screen.title(str(directory))
    engine_rows(screen, replays)
    signature_row(screen, signature, key)
    certificate_rows(screen, certificate, ran, on_engines=bool(replays))
    return passed
