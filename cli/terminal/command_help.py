"""The help of a command: options in groups, the ones that matter first, and all with ``--help-all``."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from typer.core import TyperCommand

from cli.terminal.conversion import convert_on_demand
from cli.terminal.option_groups import DETAILS, FIRST, OUTPUT, RENAMED, SCREEN
from cli.terminal.render import emit
from specs.base.errors import UserError

LISTED = "NAME|..."
"""The metavar of options whose names packages add to: help replaces it by the names that complete."""

HELP_ALL = "--help-all"
_DEFAULT = re.compile(r"\s*\[default: (.*)\]$", re.DOTALL)
_COLUMN = 24

Row = tuple[str, str]
"""The names of an argument or option, and its meaning."""


class Command(TyperCommand):
    """A command whose ``--help`` shows the groups of options that matter first, and ``--help-all`` all of them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        options = args[: args.index("--")] if "--" in args else args
        if HELP_ALL in options:
            emit(f"{self.full_help(ctx)}\n")
            ctx.exit()
        convert_on_demand(self.get_params(ctx))
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            name = getattr(error, "option_name", None)
            if (now := RENAMED.get((self.name or "", name or ""))) is None:
                raise
            raise UserError(
                f"zoo {self.name} has no option {name}: it is {now} now.\n  Pass {now}."
            ) from None

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        arguments = [parameter for parameter in self.params if parameter.param_type_name == "argument"]
        return ["[OPTIONS]", *map(_usage, arguments)]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        whole = self.full_help(ctx)
        if whole.count("\n") < SCREEN:
            formatter.write(f"{whole}\n")
            return
        self._format(ctx, formatter, self._shortened(), FIRST)
        details = ", ".join(title for title, _ in self._sections(ctx, DETAILS)[1:])
        formatter.write_paragraph()
        formatter.write_text(f"{HELP_ALL} also describes {details or 'what the command does'}.")

    def full_help(self, ctx: Any) -> str:
        """The help with the whole description and every option."""
        formatter = ctx.make_formatter()
        self._format(ctx, formatter, self.help or "", (*FIRST, *DETAILS))
        return str(formatter.getvalue()).rstrip("\n")

    def _format(self, ctx: Any, formatter: Any, description: str, groups: Sequence[str]) -> None:
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(description)
        _write(formatter, self._sections(ctx, groups))

    def sections(self, ctx: Any) -> list[tuple[str, list[Row]]]:
        """The arguments, then the options, by group."""
        return self._sections(ctx, (*FIRST, *DETAILS))

    def _sections(self, ctx: Any, groups: Sequence[str]) -> list[tuple[str, list[Row]]]:
        arguments = [
            (parameter.metavar or parameter.name, _meaning(parameter, ctx))
            for parameter in self.params
            if parameter.param_type_name == "argument"
        ]
        options: list[Any] = [parameter for parameter in self.params if parameter.param_type_name == "option"]
        sections = [("Arguments", arguments)]
        for group in groups:
            of_group = [option for option in options if (option.rich_help_panel or OUTPUT) == group]
            sections.append((group, [(_names(option, ctx), _meaning(option, ctx)) for option in of_group]))
        return [(title, rows) for title, rows in sections if rows]

    def _shortened(self) -> str:
        """The first paragraph of the description, and the examples."""
        first, *others = (self.help or "").split("\n\n")
        return "\n\n".join([first, *(text for text in others if text.startswith("\b"))])


def _write(formatter: Any, sections: Iterable[tuple[str, list[Row]]]) -> None:
    sections = list(sections)
    names = [len(name) for _, rows in sections for name, _ in rows]
    column = max(length for length in names if length <= _COLUMN)
    for title, rows in sections:
        formatter.write_paragraph()
        formatter.write_heading(title)
        for name, meaning in rows:
            lines = textwrap.wrap(
                meaning, formatter.width - column - 4, break_long_words=False, break_on_hyphens=False
            )
            if len(name) > column:
                formatter.write(f"  {name}\n")
                name = ""
            for line in lines or [""]:
                formatter.write(f"  {name:<{column}}  {line}".rstrip() + "\n")
                name = ""


def _usage(argument: Any) -> str:
    """The argument as the usage line has it: in brackets unless it is needed, with dots if it is repeated."""
    name = argument.metavar or argument.name.upper()
    if name.startswith("["):  # says itself what is optional
        return str(name)
    repeated = "..." if argument.nargs != 1 else ""
    return f"{name}{repeated}" if argument.required else f"[{name}]{repeated}"


def _names(option: Any, ctx: Any) -> str:
    short = sorted(option.opts, key=len)
    names = "/".join([", ".join(short), *option.secondary_opts])
    if option.is_flag:
        return names
    if option.metavar == LISTED:
        return f"{names} {'|'.join(item.value for item in option.shell_complete(ctx, ''))}"
    return f"{names} {option.metavar or str(option.display_type(ctx)).strip('<>')}"


def _meaning(parameter: Any, ctx: Any) -> str:
    """The help text, then default and bounds in one notation."""
    text = parameter.help or ""
    written = _DEFAULT.search(text)
    notes = [*_default(parameter, written[1] if written else None, ctx), *_bounds(parameter)]
    text = " ".join(_DEFAULT.sub("", text).split())
    return f"{text} [{'; '.join(notes)}]" if notes else text


def _default(parameter: Any, text: str | None, ctx: Any) -> Iterator[str]:
    if parameter.required and parameter.param_type_name == "option":
        yield "required"
    elif text is not None:
        yield f"default: {' '.join(text.split())}"
    elif parameter.param_type_name == "option" and parameter.show_default:
        value = parameter.get_default(ctx)
        if isinstance(value, bool):
            if value:
                yield f"default: {parameter.opts[0].lstrip('-')}"
        elif value not in (None, "", [], ()):
            yield f"default: {value}"


def _bounds(parameter: Any) -> Iterator[str]:
    least, most = parameter.min, parameter.max
    if least is not None and most is not None:
        yield f"from {least} to {most:g}"
    elif least is not None:
        yield f"at least {least}"
