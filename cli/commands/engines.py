"""``zoo engines``: the engines that this machine has, and how the others are installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.options.options import AsJson

if TYPE_CHECKING:
    from exporters.verification.engines.inventory import EngineState


def engines(as_json: AsJson = False) -> None:
    """List the engines that can prove an export: runtimes that compute its outputs, and compilers.

    Each engine is in an environment of its own, in the folder that ZOO_ENGINES names, or in the running interpreter. zoo
    export --engine NAME proves the files on it, zoo verify DIR --engine NAME does so later.

    \b
    Examples:
      zoo engines
      zoo engines --json
    """
    from dataclasses import asdict

    from cli.terminal.render import Column, print_json, print_table, say
    from exporters.verification.engines.find import VARIABLE, engines_folder
    from exporters.verification.engines.inventory import inventory

    states = inventory()
    if as_json:
        print_json({"folder": str(engines_folder()), "engines": [asdict(state) for state in states]})
        return
    print_table(
        [
            Column("engine", pinned=True),
            Column("version", pinned=True),
            Column("shows", rank=1),
            Column("targets", rank=2, prose=16),
            Column("description", rank=3, prose=20),
        ],
        [
            (engine.name, engine.version or "-", engine.shows, ", ".join(engine.targets), engine.description)
            for engine in states
        ],
    )
    for state in states:
        _say_missing(state)
    say()
    say(f"Folder of environments ({VARIABLE}): {engines_folder()}")


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
