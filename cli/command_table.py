"""The commands by name, each imported and built when it is first looked up, so that no command pays for the others."""

from __future__ import annotations

import importlib
from collections import UserDict
from typing import Any

import typer
from typer.main import get_command

FUNCTIONS = {
    "build": "cli.build:build",
    "params": "cli.params:params",
    "check": "cli.check:check",
    "report": "cli.report:report",
    "draw": "cli.draw:draw",
    "export": "cli.export:export",
    "diff": "cli.diff:diff",
    "run": "cli.run:run",
    "attend": "cli.attend:attend",
    "eval": "cli.eval:evaluate",
    "bench": "cli.bench:bench",
    "compare": "cli.compare:compare",
    "make": "cli.make:make",
    "catalog": "cli.catalog:catalog",
    "cache": "cli.cache:cache",
    "sign": "cli.sign:sign",
    "push": "cli.push:push",
    "pull": "cli.pull:pull",
    "import": "cli.import_:import_checkpoint",
    "convert": "cli.convert:convert",
    "adapt": "cli.adapt:adapt",
    "validate": "cli.validate:validate",
    "verify": "cli.verify:verify",
    "compile": "cli.compile:compile_",
    "engines": "cli.engines:engines",
    "show": "cli.show:show",
    "list": "cli.list:list_presets",
    "schema": "cli.schema:schema",
}
"""The module and function of each command, in the order of the help."""


class Commands(UserDict[str, Any]):
    """The commands of the program, as a mapping that builds them on demand."""

    def __init__(self) -> None:
        super().__init__(FUNCTIONS)

    def __getitem__(self, name: str) -> Any:
        found = super().__getitem__(name)
        if isinstance(found, str):
            found = self.data[name] = _built(name, *found.split(":"))
        return found


def _built(name: str, module: str, function: str) -> Any:
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(name)(getattr(importlib.import_module(module), function))
    return get_command(app)
