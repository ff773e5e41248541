"""Rows of default screens about a model: its parameters, its shapes and its behaviour."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cli.tables.shares import apportioned
from cli.terminal.screen import Screen, bad, doubtful, good, row_width
from zoo.core.units import parameter_text

if TYPE_CHECKING:
    from specs.model.model import Model
    from zoo.checks import BehaviourReport, ShapeReport
    from zoo.configs.named_model import NamedModel
    from zoo.reports.parameters import ParameterReport
    from zoo.reports.roles import RoleParameters

_ROLES = 4
_THEMES = {
    "causal": "causality",
    "sees the past": "causality",
    "cache": "KV cache",
    "bidirectional": "direction",
    "padded batch": "padding",
    "padding content": "padding",
    "padding side": "padding",
    "encoder padding": "padding",
}
"""The subject of a check by its name, where several checks share one, or the name is no noun."""


def title(screen: Screen, spec: Model) -> None:
    """Print the name of a model, its description and its architecture."""
    screen.title(spec.name, spec.summary or "", spec.architecture)


def read_as_row(screen: Screen, named: NamedModel) -> None:
    """Print the family or the class that a checkpoint was read as, and the fields that the family lacks."""
    if named.family is None:
        return
    from zoo.families.common.config_errors import listed

    lacks = f"; fields that it lacks: {listed(named.passed_over)}" if named.passed_over else ""
    screen.row("read as", doubtful(f"{named.family}, as asked{lacks}"))


def parameter_row(
    screen: Screen, report: ParameterReport, roles: Sequence[RoleParameters], published: bool
) -> None:
    """Print the number of parameters, whether it is the expected one, and the largest roles."""
    total, active = report.total_parameters, report.active_parameters
    text = f"{total:,}" if active == total else f"{total:,}, {parameter_text(active)} active per token"
    verdict = []
    if unmet := [comparison for comparison in report.comparisons if not comparison.met]:
        verdict = [bad(f", expected {unmet[0].expected:,}" if not unmet[0].path else f", {unmet[0]}")]
    elif report.comparisons:
        verdict = [good(", as published" if published else ", as expected")]
    shares = zip(roles, apportioned([role.parameters for role in roles], 100), strict=True)
    largest = sorted(shares, key=lambda pair: -pair[1])[:_ROLES]
    screen.row(
        "params",
        (text, *verdict),
        ", ".join(f"{role.name} {percent}%" for role, percent in largest if percent),
    )


def shape_row(screen: Screen, report: ShapeReport, *signatures: str) -> None:
    """Print whether the shapes of all modules agree, and if so some signatures."""
    if not report.passed:
        screen.row("shapes", bad("failed"))
        return
    count = len({module.path for module in report.modules})
    screen.row("shapes", good(f"{count} modules agree"), *signatures)


def behaviour_row(screen: Screen, report: BehaviourReport) -> None:
    """Print how many checks passed, what they are about, and what they ran on if that is not the model itself."""
    ran = [check for check in report.checks if check.status in ("passed", "failed")]
    failed = [check for check in ran if check.status == "failed"]
    count = bad(f"{len(failed)} of {len(ran)} failed") if failed else good(f"{len(ran)} passed")
    names = [check.name.rpartition(": ")[2].partition(",")[0] for check in failed or ran]
    themes = ", ".join(dict.fromkeys(name if failed else _THEMES.get(name, name) for name in names))
    room = row_width() - len("".join(count.lines)) - 2
    if len(themes) > room and not failed:
        themes = themes[: room - 5].rpartition(", ")[0] + ", ..."
    screen.row("checks", (count, f": {themes}"), *reduced(report.subject))


def reduced(subject: str) -> list[str]:
    """A short name of the checked or compared model; empty for the model itself."""
    if subject.startswith(("the model itself", "the model with the weights of the files")):
        return []
    first = subject.partition(", and ")[0]
    return [f"on {re.split(' with |, ', first)[0] if first.startswith('a reduced') else first}"]
