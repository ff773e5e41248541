"""Checks of the requested engines."""

from __future__ import annotations

from collections.abc import Iterable

from exporters.verification.engines.find import installation, interpreter_of
from exporters.verification.engines.table import ENGINES, engine_named
from specs.base.errors import UserError, option_name


def check_engines(names: Iterable[str], target: str, verify: bool) -> None:
    """Raise :class:`specs.base.errors.UserError` for unknown engines, and those that do not take the graphs of a target."""
    for engine in map(engine_named, names):
        if not verify:
            raise UserError(
                f"{option_name('engines')} needs verified files\n  value: {engine.name}\n"
                f"  Leave {option_name('verify', False)} out."
            )
        if not engine.speaks_for(target):
            able = [other.name for other in ENGINES.values() if other.speaks_for(target)]
            raise UserError(
                f"{option_name('engines')} {engine.name} takes only graphs for {option_name('target')} {engine.targets_text}\n"
                f"  value: {target}\n  Engines for {target}: {', '.join(able)}."
            )


def check_installed(names: Iterable[str]) -> None:
    """Raise :class:`specs.base.errors.UserError` for an engine that is not installed."""
    for engine in map(engine_named, names):
        if interpreter_of(engine) is None:
            needs = f"  It also needs {engine.libraries}.\n" if engine.libraries else ""
            commands = "\n".join(f"    {command}" for command in installation(engine))
            raise UserError(
                f"{option_name('engines')} {engine.name} is not installed on this machine.\n{needs}"
                f"  Install it in an environment of its own:\n{commands}"
            )
