"""Default screens of ``zoo verify``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cli.terminal.screen import Screen, bad, doubtful, good

if TYPE_CHECKING:
    from exporters.exported.verify_export import ExportVerification
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


def certificate_rows(
    screen: Screen, certificate: Certificate, proven: bool, *, on_engines: bool = False
) -> None:
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
        screen.failed(f"{directory} was not run: {certificate.note or 'the engine did not run it'}")
    else:
        if certificate.note:
            screen.fact("note", doubtful(certificate.note))
        screen.done(f"Verified {directory}")
        screen.next(
            (["verify", directory, "--pytorch"], "all cases, with PyTorch"),
            (["report", directory], "how it was verified"),
        )


def verified_again(screen: Screen, shown: ExportVerification) -> None:
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
    if shown.passed:
        screen.done(f"Verified {shown.directory}")
        screen.next((["report", str(shown.directory)], "sizes, and how it was verified"))
        return
    faults = [(change, _REMEDY) for change in map(str, shown.integrity.changes)]
    faults += [(shown.fault, "Export the model again.")] if shown.fault else []
    if shown.verification is not None and not shown.verification.passed:
        faults.append(("The outputs differ from those of PyTorch.", "Export the model again."))
    screen.failed(f"{shown.directory} failed:", faults)
