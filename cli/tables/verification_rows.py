"""Default screens of ``zoo verify``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cli.terminal.screen import Screen, bad, doubtful, good

if TYPE_CHECKING:
    from exporters.exported.verify_export import ExportVerification
    from exporters.remotes.signing.signature import SignatureCheck
    from exporters.verification.engines.result import EngineResult
    from zoo.record.certificate import Certificate

_REMEDY = "Copy the directory again, or export the model again."
_ALONE = "Run zoo verify without --engine to compare the files alone."


def engine_rows(screen: Screen, replays: Sequence[tuple[Certificate, EngineResult]]) -> None:
    """Print the result of each engine."""
    for certificate, result in replays:
        screen.fact("engine", (good if result.passed else bad)(str(result)))
        _print_outputs(screen, certificate)


def _print_outputs(screen: Screen, certificate: Certificate) -> None:
    """Print a table of the compared outputs, where tables were asked for."""
    from cli.terminal.render import Column, print_table, say

    if screen.tables and certificate.outputs:
        print_table(
            [
                Column("output", pinned=True),
                Column("largest difference", right=True),
                Column("tolerance", right=True),
            ],
            [
                (name, f"{difference:.1e}", f"{tolerance:.1e}")
                for name, (difference, tolerance) in certificate.outputs.items()
            ],
        )
        say()


def certificate_rows(screen: Screen, certificate: Certificate, proven: bool, *, on_engines: bool) -> None:
    """Print the files, the outputs of the recorded case, and the verdict; or the faults."""
    provider = certificate.provider.removesuffix("ExecutionProvider")
    outputs = certificate.outputs
    _print_outputs(screen, certificate)
    if not certificate.faults:
        screen.fact("files", f"{certificate.files} files match their recorded SHA-256")
    if outputs:
        difference, tolerance = max(outputs.values(), key=lambda pair: pair[0] / (pair[1] or 1))
        equal = all(difference <= tolerance for difference, tolerance in outputs.values())
        screen.fact(
            "outputs",
            (
                good("as verified") if equal else bad("differ"),
                f", largest difference {difference:.1e} ({tolerance:.1e} allowed)",
            ),
            f"{len(outputs)} outputs of a recorded case, ONNX Runtime on {provider}",
        )
    directory = certificate.directory
    if certificate.faults:
        heading = f"{directory} failed:" if on_engines else f"{directory} is not as it was verified:"
        remedy = _ALONE if on_engines else _REMEDY
        screen.failed(heading, [(fault, remedy) for fault in certificate.faults])
    elif not proven:
        screen.failed(unproven_text(certificate))
    else:
        if certificate.note:
            screen.fact("note", doubtful(certificate.note))
        screen.done(f"Verified {directory}")
        screen.next(
            (["verify", directory, "--pytorch"], "all cases, with PyTorch"),
            (["report", directory], "how it was verified"),
        )


def unproven_text(certificate: Certificate) -> str:
    """The failure of an export of which nothing was run."""
    return f"{certificate.directory} was not run: {certificate.note or 'the engine did not run it'}"


def signature_row(screen: Screen, signature: SignatureCheck | None, key: Path | None) -> None:
    """Print that a signature by a key is valid; an invalid one is among the failures."""
    if signature is not None and signature.valid:
        screen.fact("signed", f"with the key of {key}: {len(signature.files)} files")


def failures_again(shown: ExportVerification, signature: SignatureCheck | None) -> list[tuple[str, str]]:
    """The failures of comparing an export with PyTorch again, each with its remedy; none where it passed."""
    failures = [(str(change), _REMEDY) for change in shown.integrity.changes]
    if signature is not None and not signature.valid:
        failures.append((signature.fault, _REMEDY))
    if shown.fault:
        failures.append((shown.fault, "Export the model again."))
    if shown.verification is not None and not shown.verification.passed:
        failures.append(("The outputs differ from those of PyTorch.", "Export the model again."))
    return failures


def verified_again(screen: Screen, shown: ExportVerification, failures: Sequence[tuple[str, str]]) -> None:
    """Print the result of comparing an export with PyTorch again."""
    from cli.tables.export_rows import verification_row
    from cli.tables.export_tables import print_verification

    if shown.integrity.intact:
        screen.fact("files", "as recorded")
    if shown.verification is not None:
        verification_row(screen, shown.verification)
        if screen.tables:
            print_verification(shown.verification)
    if shown.unproven:
        screen.fact("verify", doubtful(f"not compared with PyTorch: {shown.unproven}"))
    if failures:
        screen.failed(f"{shown.directory} failed:", failures)
        return
    screen.done(f"Verified {shown.directory}")
    screen.next((["report", str(shown.directory)], "sizes, and how it was verified"))
