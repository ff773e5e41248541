"""The commands by name, each imported and built when it is first looked up, so that no command pays for the others."""

from __future__ import annotations

import importlib
from collections import UserDict
from typing import Any

import typer
from typer.main import get_command

FUNCTIONS = {
    "build": "cli.commands.build:build",
    "params": "cli.commands.params:params",
    "check": "cli.commands.check:check",
    "report": "cli.commands.report:report",
    "draw": "cli.commands.draw:draw",
    "export": "cli.commands.export:export",
    "diff": "cli.commands.diff:diff",
    "run": "cli.commands.run:run",
    "attend": "cli.commands.attend:attend",
    "eval": "cli.commands.eval:evaluate",
    "bench": "cli.commands.bench:bench",
    "compare": "cli.commands.compare:compare",
    "make": "cli.commands.make:make",
    "catalog": "cli.commands.catalog:catalog",
    "cache": "cli.commands.cache:cache",
    "sign": "cli.commands.sign:sign",
    "push": "cli.commands.push:push",
    "pull": "cli.commands.pull:pull",
    "import": "cli.commands.import_:import_checkpoint",
    "convert": "cli.commands.convert:convert",
    "adapt": "cli.commands.adapt:adapt",
    "validate": "cli.commands.validate:validate",
    "verify": "cli.commands.verify:verify",
    "compile": "cli.commands.compile:compile_",
    "engines": "cli.commands.engines:engines",
    "show": "cli.commands.show:show",
    "list": "cli.commands.list:list_presets",
    "schema": "cli.commands.schema:schema",
}
"""The module and function of each command, in the order of the help."""


class Commands(UserDict[str, Any]):
    """The commands of the program, as a mapping that builds them on demand."""

    def __init__(self) -> None:
        super().__init__(FUNCTIONS)

    def __getitem__(self, name: str) -> Any:
        entry = super().__getitem__(name)
        if isinstance(entry, str):
            entry = self.data[name] = _built(name, *entry.split(":"))
        return entry


def _built(name: str, module: str, function: str) -> Any:
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(name)(getattr(importlib.import_module(module), function))
    return get_command(app)
