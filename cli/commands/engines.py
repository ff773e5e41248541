"""``zoo engines``: the engines that this machine has, and how the others are installed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cli.terminal.option import AsJson, Verbose

if TYPE_CHECKING:
    from exporters.verification.engines.inventory import EngineState

_VERSION = re.compile(r"[^\s-]*(-[a-z]+)?")
"""A version without the date of its build and what it runs on."""


def engines(verbose: Verbose = False, as_json: AsJson = False) -> None:
    """List the engines that can verify an export: runtimes that compute its outputs, and compilers.

    Each engine is in an environment of its own, in the folder that ZOO_ENGINES names, or in the running interpreter. zoo
    export --engine NAME verifies the files on it, zoo verify DIR --engine NAME does so later. -v prints whole versions, every
    target and what each engine is.

    \b
    Examples:
      zoo engines
      zoo engines -v
      zoo engines --json
    """
    from cli.terminal.screen import Screen, screen_width

    screen = Screen(verbose, False, as_json)
    from dataclasses import asdict

    from cli.terminal.render import Column, print_json, print_table, say
    from exporters.verification.engines.find import VARIABLE, engines_folder
    from exporters.verification.engines.inventory import inventory

    states = inventory()
    if as_json:
        print_json({"folder": str(engines_folder()), "engines": [asdict(state) for state in states]})
        return
    columns = [
        Column("engine", pinned=True),
        Column("version", pinned=True),
        Column("shows"),
        Column("targets", prose=16),
    ]
    width = None if verbose else screen_width()
    if verbose:
        described = Column("description", prose=20)
        print_table([*columns, described], [(*_row(state, verbose), state.description) for state in states])
        for state in states:
            _say_missing(state)
        say()
        say(f"Folder of environments ({VARIABLE}): {engines_folder()}")
    else:
        print_table(columns, [_row(state, verbose) for state in states], width)
    ready = sum(bool(state.version) for state in states)
    screen.done(f"{ready} of {len(states)} engines found")
    screen.next(
        *([] if verbose or ready == len(states) else [(["engines", "-v"], "how to install the others")])
    )


def _row(state: EngineState, verbose: bool) -> tuple[str, str, str, str]:
    from exporters.target.targets import TARGETS

    if verbose:
        return state.name, state.version or "-", state.shows, ", ".join(state.targets)
    version = _VERSION.match(state.version)
    targets = "all" if len(state.targets) == len(TARGETS) else ", ".join(state.targets)
    return state.name, version[0] if version and version[0] else "-", state.shows, targets


def _say_missing(state: EngineState) -> None:
    from cli.terminal.render import say

    if state.version:
        return
    say()
    needs = f" It needs {state.libraries}." if state.libraries else ""
    if state.problem:
        say(f"{state.name} does not start: {state.problem}.{needs}", "yellow")
    else:
        say(f"{state.name} is not installed.{needs} Install it:")
        for command in state.install:
            say(f"  {command}")
