"""The reference of the command line, from the commands themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from cli.app import app

_SPECIAL = re.compile(r"([\\`*_{}\[\]|])")


def cli_page() -> str:
    """Every command with its arguments, options and examples, as Markdown."""
    program: Any = get_command(app)
    lines = ["# Command line", ""]
    lines += _help(program.help)
    lines += ["`zoo --install-completion` completes commands, presets and files in your shell.", ""]
    for name, command in program.commands.items():
        lines += _command(name, command)
    return "\n".join(lines)


def _command(name: str, command: Any) -> Iterator[str]:
    context = command.make_context(f"zoo {name}", [], resilient_parsing=True)
    yield from (
        f"## zoo {name}",
        "",
        "```text",
        command.get_usage(context).removeprefix("Usage: "),
        "```",
        "",
    )
    yield from _help(command.help)
    for title, rows in command.sections(context):
        yield from (f"| {title} | |", "|---|---|")
        yield from (f"| {_code(name)} | {_plain(meaning)} |" for name, meaning in rows)
        yield ""


def _code(text: str) -> str:
    """A cell of code: a bar in it would end the cell on GitHub, and a backslash would show in the site."""
    if "|" not in text:
        return f"`{text}`"
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "&#124;")
    return f"<code>{escaped}</code>"


def _help(text: str) -> Iterator[str]:
    """Help text as Markdown: paragraphs, and what follows a backspace as it stands."""
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("\b"):
            yield from ("```text", paragraph.strip("\b\n"), "```", "")
        else:
            yield from (_plain(paragraph), "")


def _plain(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text).replace("<", "&lt;").replace(">", "&gt;")
