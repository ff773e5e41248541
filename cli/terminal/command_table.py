"""The commands by name, each imported and built when it is first looked up, so that no command pays for the others."""

from __future__ import annotations

import importlib
from collections import UserDict
from pathlib import Path
from typing import Any

import typer
from typer.main import get_command

from cli.terminal.command_help import Command
from cli.terminal.option import with_values

GROUPS = {
    "Start": {
        "new": "cli.commands.new:new",
        "list": "cli.commands.list:list_presets",
        "show": "cli.commands.show:show",
        "build": "cli.commands.build:build",
        "run": "cli.commands.run:run",
        "import": "cli.commands.import_:import_checkpoint",
    },
    "Understand": {
        "params": "cli.commands.params:params",
        "report": "cli.commands.report:report",
        "diff": "cli.commands.diff:diff",
        "draw": "cli.commands.draw:draw",
        "studio": "cli.commands.studio:studio",
        "check": "cli.commands.check:check",
        "attend": "cli.commands.attend:attend",
        "gallery": "cli.commands.gallery:gallery",
        "compare": "cli.commands.compare:compare",
    },
    "Export": {
        "export": "cli.commands.export:export",
        "verify": "cli.commands.verify:verify",
        "eval": "cli.commands.eval:evaluate",
        "bench": "cli.commands.bench:bench",
        "compile": "cli.commands.compile:compile_",
        "engines": "cli.commands.engines:engines",
        "convert": "cli.commands.convert:convert",
        "adapt": "cli.commands.adapt:adapt",
    },
    "Many models": {
        "init": "cli.commands.init:init",
        "make": "cli.commands.make:make",
        "catalog": "cli.commands.catalog:catalog",
        "cache": "cli.commands.cache:cache",
    },
    "Publish": {
        "sign": "cli.commands.sign:sign",
        "push": "cli.commands.push:push",
        "pull": "cli.commands.pull:pull",
    },
    "Specs": {
        "validate": "cli.commands.validate:validate",
        "schema": "cli.commands.schema:schema",
        "help": "cli.commands.help:help_",
    },
}
"""The module and function of each command, by the groups and in the order of the help."""

COMMANDS = Path(__file__).parents[1] / "commands"
FUNCTIONS = {name: function for group in GROUPS.values() for name, function in group.items()}


def summary(name: str) -> str:
    """The first paragraph of a command's help, read from its source: importing all commands takes as long as all else."""
    module, function = FUNCTIONS[name].split(":")
    text = (COMMANDS / f"{module.rpartition('.')[2]}.py").read_text("utf-8")
    docstring = text.partition(f"def {function}(")[2].split('"""')[1]
    return " ".join(docstring.split("\n\n")[0].split())


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
    app.command(name, cls=Command)(with_values(getattr(importlib.import_module(module), function)))
    return get_command(app)
