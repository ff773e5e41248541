"""Default screens: the answer in a few labelled rows, the time it took, and what to do next.

A screen is a parameter of its command, with the options ``--verbose``, ``--quiet`` and ``--json``. It has a title, rows, a last
line such as ``build/gpt2 is ready in 12.1 s.``, and commands that work as printed::

    screen.title(spec.name, spec.summary, spec.architecture)
    screen.row("params", ("124,439,808, ", good("as published")), "embedding 31 %, attention 23 %")
    if screen.tables:
        print_parameters(...)
    screen.done("build/gpt2 is ready")
    screen.next((["run", "build/gpt2", "--ids", "1,2,3"], "try it"))

``--verbose`` prints tables in place of the rows; ``--quiet`` and ``--json`` print neither.  Failures are always printed.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cli.terminal.option import AsJson, Quiet, Verbose
from cli.terminal.progress import stage_progress
from cli.terminal.render import Cell, columns_of, say_line, styled
from cli.terminal.table_layout import cell_width, wrap
from specs.base.errors import UserError
from specs.base.printable import printable

if TYPE_CHECKING:
    from zoo.core.progress import Stage

PIPED = 80
"""The width of a screen that is not printed to a terminal."""
MOST_LINES = 15
"""The lines of a screen, unless its answer needs more."""
_WIDEST = 100
_LABEL = 10
_INDENT = "  "

Line = str | Cell | Sequence[str | Cell]
"""A line of a row: text, styled text, or pieces of either."""
Step = tuple[Sequence[str], str]
"""The arguments of a command of the program, and a comment of a few words."""


def good(text: str) -> Cell:
    """A favourable verdict."""
    return styled(text, "green")


def bad(text: str) -> Cell:
    """A failure."""
    return styled(text, "bold red")


def doubtful(text: str) -> Cell:
    """A caveat."""
    return styled(text, "yellow")


def screen_width(*, err: bool = False) -> int:
    """Return the width of a screen: the terminal's, up to 100 columns, or 80 without a terminal."""
    return min(columns_of(sys.stderr if err else sys.stdout) or PIPED, _WIDEST)


def row_width() -> int:
    """The columns of the lines of a row."""
    return screen_width() - _LABEL


@dataclass
class Screen:
    """The screen of one command, printed line by line as its results arrive."""

    verbose: Verbose = False
    quiet: Quiet = False
    as_json: AsJson = False
    _begun: float = field(default_factory=time.monotonic, init=False)
    _lines: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.verbose and self.quiet:
            raise UserError("--verbose and --quiet are mutually exclusive.\n  Remove one of them.")

    @property
    def silent(self) -> bool:
        """Whether nothing but failures, or JSON, is printed."""
        return self.quiet or self.as_json

    @property
    def tables(self) -> bool:
        """Whether the command prints its tables."""
        return self.verbose and not self.as_json

    @property
    def rows(self) -> bool:
        """Whether rows are printed."""
        return not (self.silent or self.verbose)

    def tabulate_if(self, asked: bool) -> None:
        """Print tables, unless quiet, if an option that only tables depend on was given."""
        self.verbose |= asked and not self.quiet

    def title(self, name: str, about: str = "", kind: str = "") -> None:
        """Print the name of the subject, its description, and its kind at the right margin if there is room."""
        if self.silent:
            return
        width = screen_width()
        pieces: list[str | Cell] = [styled(name, "bold"), *([f"{_INDENT}{about}"] if about else [])]
        *before, last = _wrapped(pieces, width, "", _INDENT)
        room = width - _width(last) - len(kind)
        if kind and room >= len(_INDENT):
            last = [*last, " " * room, styled(kind, "dim")]
        for line in (*before, last):
            self._say(line)

    def row(self, label: str, *lines: Line) -> None:
        """Print a labelled row: its first line, and continuation lines below it."""
        if self.rows:
            self.fact(label, *lines)

    def fact(self, label: str, *lines: Line) -> None:
        """Print a row that no table of ``--verbose`` replaces."""
        if self.silent:
            return
        head = f"{_INDENT}{label:<{_LABEL - len(_INDENT)}}"
        head += " " * (not head.endswith(" "))
        for line in lines:
            for part in _wrapped(_pieces(line), screen_width(), head, " " * _LABEL, "dim"):
                self._say(part)
            head = " " * _LABEL

    def progress(self) -> AbstractContextManager[Callable[[Stage], None]]:
        """A live line for the stages of the command's work; rows are printed before and after it."""
        return stage_progress(quiet=self.silent, since=self._begun)

    def done(self, what: str) -> None:
        """Print the last sentence, with the time that the command took."""
        if not self.silent:
            self._say([])
            took = _duration(time.monotonic() - self._begun)
            for line in _wrapped([styled(f"{what} in {took}.", "bold")], screen_width(), "", ""):
                self._say(line)

    def next(self, *steps: Step) -> None:
        """Print commands to go on with; a shell takes each of them as printed, with its comment.

        The first is always printed, and others if they leave the screen within :data:`MOST_LINES`.
        """
        if self.silent:
            return
        width = screen_width()
        commands = [(_command(arguments), f"# {comment}" if comment else "") for arguments, comment in steps]
        while len(commands) > 1 and self.rows and self._lines + _height(commands, width) > MOST_LINES:
            commands.pop()
        column = _column(commands, width)
        for lines, comment in commands:
            gap = max(column - cell_width(lines[-1]), 0) + 2
            beside = cell_width(lines[-1]) + gap + len(comment) <= width
            if not beside:
                self._say([styled(f"{_INDENT}{comment}", "dim")])
            for line in lines[:-1]:
                self._say([line])
            aligned: list[str | Cell] = [lines[-1], " " * gap, styled(comment, "dim")]
            self._say(aligned if beside and comment else lines[-1:])

    def _say(self, line: Sequence[str | Cell]) -> None:
        self._lines += 1
        say_line(line)

    def failed(self, outcome: str, failures: Iterable[tuple[str, str]] = ()) -> None:
        """Print the outcome, and each failure with its remedy, in red on stderr: the last lines of a command."""
        if self.as_json:
            return
        if self._lines:
            say_line([], err=True)
        print_failed(outcome, failures)


def print_failed(outcome: str, failures: Iterable[tuple[str, str]]) -> None:
    """Print an outcome, and each failure with its remedy, in red on stderr."""
    first, *others = outcome.split("\n")
    _print_red(first, "", "bold red")
    for line in others:
        _print_red(line, "", "red")
    for pair in failures:
        for level, text in enumerate(pair, 1):
            for line in text.split("\n") if text else ():
                _print_red(line, _INDENT * level, "red")


def _print_red(text: str, indent: str, style: str) -> None:
    inner = indent + text[: len(text) - len(text.lstrip())]
    for line in _wrapped([styled(text.lstrip(), style)], screen_width(err=True), inner, inner + _INDENT):
        say_line(line, err=True)


def _duration(seconds: float) -> str:
    """Seconds as text: ``12.1 s``, ``2 min 05 s``."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"


def _pieces(line: Line) -> list[Cell]:
    pieces = [line] if isinstance(line, str | Cell) else line
    return [piece if isinstance(piece, Cell) else styled(piece, "") for piece in pieces]


def _width(line: Iterable[str | Cell]) -> int:
    return sum(cell_width("".join(piece.lines)) for piece in _pieces([*line]))


def _wrapped(
    line: Line, width: int, first: str, indent: str, first_style: str = ""
) -> list[list[str | Cell]]:
    """The pieces wrapped at words to a width; the first line starts with ``first``, the others with ``indent``."""
    pieces = [(printable(piece.lines[0]), piece.style) for piece in _pieces(line)]
    text = "".join(part for part, _ in pieces)
    styles = [style for part, style in pieces for _ in part]
    lines: list[list[str | Cell]] = []
    offset = 0
    for part in wrap(first + text, width, indent):
        head = indent if lines else first
        body = part[len(head) :]
        offset = text.index(body, offset)
        runs: list[str | Cell] = [styled(head, first_style) if not lines else head]
        begun = offset
        for end in range(offset + 1, offset + len(body) + 1):
            if end == offset + len(body) or styles[end] != styles[begun]:
                runs.append(styled(text[begun:end], styles[begun]))
                begun = end
        offset += len(body)
        lines.append(runs if body else [head])
    return lines


def _column(commands: Sequence[tuple[list[str], str]], width: int) -> int:
    """The column of the comments: the end of the longest command that leaves room for every comment."""
    longest = max((len(comment) for _, comment in commands), default=0)
    ends = [cell_width(lines[-1]) for lines, _ in commands]
    return max((end for end in ends if end + 2 + longest <= width), default=0)


def _height(commands: Sequence[tuple[list[str], str]], width: int) -> int:
    """The lines that commands take: their own, and one for each comment without room beside its command."""
    column = _column(commands, width)
    return sum(
        len(lines) + (max(column, cell_width(lines[-1])) + 2 + len(comment) > width)
        for lines, comment in commands
    )


def _command(arguments: Sequence[str]) -> list[str]:
    """The lines of a command, broken between arguments where it is wider than the screen."""
    lines = [f"{_INDENT}zoo"]
    for words in _with_values(arguments):
        if cell_width(f"{lines[-1]} {words} \\") > screen_width() and lines[-1].strip() != "zoo":
            lines[-1] += " \\"
            lines.append(f"{_INDENT * 2}{words}")
        else:
            lines[-1] += f" {words}"
    return lines


def _with_values(arguments: Sequence[str]) -> Iterator[str]:
    """The arguments as words of a shell; an option stays with its value."""
    option = ""
    for argument in arguments:
        if option:
            yield option if argument.startswith("-") else f"{option} {shlex.quote(argument)}"
            if not argument.startswith("-"):
                option = ""
                continue
        option = argument if argument.startswith("-") else ""
        if not option:
            yield shlex.quote(argument)
    if option:
        yield option
