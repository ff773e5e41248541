"""The verification recorded in an exported directory: errors of its graphs against the PyTorch model."""

from __future__ import annotations

from html import escape

from zoo.pages.markup import section, table
from zoo.record.integrity import Integrity
from zoo.record.manifest import ExportRecord
from zoo.record.records import VerificationRecord

_FIGURES = ("largest difference", "relative", "allowed", "same top token")


def verification_section(export: ExportRecord, integrity: Integrity, level: int = 2) -> str:
    """The recorded comparisons, unless files have changed or none were recorded, below a heading of a level."""
    manifest, verification = export.manifest, export.verification
    about = f"Exported for target {manifest.target} in {manifest.precision}."
    if export.build is not None:
        about += f" Weights: {export.build.weights_from}."
    if verification is not None:
        about += (
            f" Run: {verification.ran}, in {verification.runtime} on {verification.provider}."
            f" Compared with PyTorch: {verification.subject}."
        )
    verdict = _verdict(export, verification, integrity)
    return section("verification", "Verification", escape(about), verdict, level)


def _verdict(export: ExportRecord, verification: VerificationRecord | None, integrity: Integrity) -> str:
    if not integrity.intact:
        changes = "".join(f"<li>{escape(str(change))}</li>" for change in integrity.changes)
        return (
            '<p class="bad">The files have changed since they were exported, so no verification applies to them.</p>'
            f"<ul>{changes}</ul>"
        )
    if verification is None:
        why = f" ({escape(export.unproven)})" if export.unproven else ""
        return f'<p class="bad">This export was not verified{why}.</p>'
    comparisons = verification.comparisons
    passed = sum(comparison.passed for comparison in comparisons)
    state = "good" if verification.passed else "bad"
    certainty = "good" if integrity.contents else "quiet"
    compared = (
        "The files are those that were verified: sizes and SHA-256 digests are as recorded."
        if integrity.contents
        else "The files have the recorded sizes. Their contents were not compared with the recorded digests."
    )
    return (
        f'<p class="{state}">{passed} of {len(comparisons)} comparisons passed.</p>\n'
        f'{_engines(verification)}<p class="{certainty}">{compared}</p>\n{_comparisons(verification)}'
    )


def _engines(verification: VerificationRecord) -> str:
    """The outcome of each engine; nothing is claimed of others."""
    lines = [
        f"{verification.runtime} on {verification.provider}: computed",
        *(engine.text for engine in verification.engines),
    ]
    return (
        f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}<li>other engines: not tried</li></ul>\n"
    )


def _comparisons(verification: VerificationRecord) -> str:
    rows = [
        [
            escape(comparison.case),
            f"<code>{escape(comparison.shape)}</code>",
            f"<code>{escape(comparison.output)}</code>",
            _figure(comparison.max_abs),
            _figure(comparison.max_rel),
            _figure(comparison.tolerance),
            "" if comparison.top_token is None else f"{comparison.top_token:.1%}",
            '<span class="good">passed</span>' if comparison.passed else f'<span class="bad">{escape(comparison.fault or "failed")}</span>',
        ]
        for comparison in verification.comparisons
    ]  # fmt: skip
    return table("Comparisons", ("case", "shape", "output", *_FIGURES, "result"), rows, _FIGURES)


def _figure(value: float | None) -> str:
    return "infinite" if value is None else f"{value:.1e}"
