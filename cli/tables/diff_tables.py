"""Tables of ``zoo diff``."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from cli.terminal.render import Cell, Column, print_table, say, styled
from specs.forms.resolved import without_omitted
from specs.language.writing import dump
from zoo.core.units import byte_text, flop_text
from zoo.reports.module_pairs import ModulePair, described

if TYPE_CHECKING:
    from specs.forms.difference import Difference
    from zoo.reports.difference import ModelDifference
    from zoo.reports.quantities import Quantity
    from zoo.reports.side import Side
    from zoo.reports.spec_difference import SpecDifference

_COLORS = {"-": "red", "+": "green"}
_STYLES = {"-": "red", "+": "green", "~": "", " ": "dim"}
MOST_ASSIGNMENTS = 12
"""The largest number of --set options that is printed."""
_LABELS = {
    "see": "image encoder",
    "training": "training state with Adam",
    "weights": "weights in fp16",
    "without embeddings": "without embedding tables",
}

_MODULES = [
    Column("", pinned=True),
    Column("module", pinned=True),
    Column("kind", prose=16, rank=1),
    Column("weights", prose=24, rank=4),
    Column("parameters A", right=True, rank=3),
    Column("parameters B", right=True, rank=3),
    Column("B - A", right=True),
    Column("FLOPs", right=True),
]
_COSTS = [
    Column("cost", prose=16, pinned=True),
    Column("A", right=True),
    Column("B", right=True),
    Column("B - A", right=True),
    Column("B / A", right=True),
]


def print_specs(difference: SpecDifference) -> None:
    """Print the names of both models, then the differences as lines of YAML marked - and +, as in diff(1)."""
    _print_line("-", f"-- A {difference.a.label}: {outline(difference.a)}")
    _print_line("+", f"++ B {difference.b.label}: {outline(difference.b)}")
    changes = [change for change in difference.spec if not change.follows]
    for names, change in by_stacks(changes):
        for mark, path, value in (("-", change.path, change.a), ("+", change.path_b, change.b)):
            for line in _value_lines((*names, *path[len(names) :]) if names else path, value, change.layers):
                _print_line(mark, f" {line}")
    if difference.same:
        alike = "" if difference.exports is None else ", and both exports have the same options and weights"
        say(f"\nThe specs are equal{alike}.")
    elif difference.spec and difference.same_architecture:
        say("\nBoth models compute the same function; they differ in training or in the longest input.")


def outline(side: Side) -> str:
    """The architecture of a side, with its depth and width."""
    spec = side.spec
    depths = " + ".join(str(stack.depth) for _, stack in spec.stacks())
    return f"{spec.architecture}, {depths} layers, {spec.widths_text} wide"


def _print_line(mark: str, text: str) -> None:
    say(f"{mark}{text}", _COLORS[mark])


def by_stacks(changes: Sequence[Difference]) -> list[tuple[tuple[str, ...], Difference]]:
    """The differences, with one that occurs in both encoder and decoder merged."""
    every: list[tuple[tuple[str, ...], Difference]] = []
    for change in changes:
        twins = [
            other
            for other in changes
            if {change.path[0], other.path[0]} == {"encoder", "decoder"} and change.path == change.path_b
            and (change.path[1:], change.layers, change.a, change.b) == (other.path[1:], other.layers, other.a, other.b)
        ]  # fmt: skip
        if not twins:
            every.append(((), change))
        elif change.path[0] == "encoder":
            every.append((("{encoder,decoder}",), change))
    return every


def _value_lines(path: Sequence[str | int], value: Any, layers: tuple[int, ...] | None) -> list[str]:
    """A value with its path as YAML; no lines for an absent value."""
    if value is None:
        return []
    shown = without_omitted(value) if isinstance(value, Mapping) else value
    first, *rest = dump({"_": shown}).splitlines()
    first = ".".join(map(str, path)) + first.removeprefix('"_"')
    note = f"  # layer{'s' * (len(layers) > 1)} {_numbers(layers)}" if layers else ""
    return [first + note, *rest]


def _numbers(layers: Sequence[int]) -> str:
    """Indices as ranges, 0-3, 7, or as an arithmetic sequence, 0, 2, ..., 24."""
    steps = {after - before for before, after in pairwise(layers)}
    if len(layers) > 3 and len(steps) == 1 and steps != {1}:
        return f"{layers[0]}, {layers[1]}, ..., {layers[-1]}"
    runs = [list(run) for _, run in groupby(enumerate(layers), lambda pair: pair[1] - pair[0])]
    return ", ".join(f"{run[0][1]}-{run[-1][1]}" if len(run) > 1 else str(run[0][1]) for run in runs)


def print_models(difference: ModelDifference, *, depth: int, typed: bool) -> None:
    """Print the --set options for the difference unless they were given, the differing modules, and both costs."""
    if not typed and difference.assignments:
        options = " ".join(f"--set {shlex.quote(assignment)}" for assignment in difference.assignments)
        many = len(difference.assignments) > MOST_ASSIGNMENTS
        say(
            f"\nB is A with {f'{len(difference.assignments)} --set options (listed by --json)' if many else options}"
        )
    if difference.modules.differs and depth:
        say()
        print_table(_MODULES, map(_module_row, _rows((), [difference.modules], -1, depth)))
    say()
    print_table(_COSTS, [[label(quantity), *_figures(quantity)] for quantity in difference.quantities])
    at_once = f", batch size {difference.sizes.batch}" if difference.sizes.batch > 1 else ""
    say(f"\nFLOPs of matrix products; bytes in fp16, training state without activations{at_once}")
    for fault in difference.faults:
        say(f"\nFLOPs are not available: {fault}", "yellow")


def _module_row(row: tuple[str, ...]) -> list[Cell]:
    return [styled(text, _STYLES[row[0]]) for text in row]


def quantity_text(quantity: Quantity, count: int) -> str:
    """A count in the unit of a quantity."""
    written = {"parameters": lambda n: f"{n:,}", "bytes": byte_text, "FLOPs": flop_text}
    return written[quantity.unit](count)


def label(quantity: Quantity) -> str:
    name, tokens = quantity_name(quantity), quantity.tokens
    return name if tokens is None else f"{name} {'after' if name == 'step' else 'of'} {tokens:,} tokens"


def quantity_name(quantity: Quantity) -> str:
    """The name of a quantity, without its tokens."""
    return _LABELS.get(quantity.name, quantity.name)


def _rows(
    prefix: tuple[str, ...], run: list[ModulePair], level: int, depth: int, around: int = 1
) -> Iterator[tuple[str, ...]]:
    """The rows of a run of pairs with the same differences, and of the differences within them.

    Every row adds up all modules that it stands for: ``around`` equal modules have such a run.
    """
    if level >= depth:
        return
    first, pad = run[0], "  " * level
    name = ".".join((*prefix, _both(first, "name")))
    if len(run) > 1:
        name = f"{'.'.join(prefix)}.{_numbers([int(row.module.name) for row in run])} x{len(run)}"
    mark = "+" if first.a is None else "-" if first.b is None else "~" if first.differs_itself else " "
    count = around * len(run)
    a, b = (count * parameters for parameters in first.parameters)
    shown = f"{a:,}" if first.a else "", f"{b:,}" if first.b else "", f"{b - a:+,}" if a != b else ""
    if level >= 0:
        flops = count * (first.flops[1] - first.flops[0])
        yield mark, pad + name, _both(first, "kind"), _weights(first), *shown, _signed(flops, flop_text)
    for inner_prefix, inner in _runs(first):
        yield from _rows(inner_prefix, inner, level + 1, depth, count)


def _signed(change: int, written: Callable[[int], str]) -> str:
    """A change with its sign; empty for no change."""
    return f"{'+' if change > 0 else '-'}{written(abs(change))}" if change else ""


def _runs(pair: ModulePair) -> list[tuple[tuple[str, ...], list[ModulePair]]]:
    """The pairs to show within a pair, with equal neighbours of a list grouped; a list itself has no row."""
    runs: list[tuple[tuple[str, ...], list[ModulePair]]] = []
    for child in pair.children:
        if not child.differs:
            continue
        if child.module.kind != "ModuleList":
            runs.append(((), [child]))
            continue
        alike: dict[Any, list[ModulePair]] = {}
        for block in child.children:
            if block.differs:
                alike.setdefault(block.look, []).append(block)
        runs += [((child.module.name,), blocks) for blocks in alike.values()]
    return runs


def _both(pair: ModulePair, key: str) -> str:
    """The text of both modules, printed once if equal."""
    return " → ".join(dict.fromkeys(getattr(side, key) for side in (pair.a, pair.b) if side))


def _weights(pair: ModulePair) -> str:
    """The weights of a module that only one model has, or the weights that differ."""
    a, b = (described(side) if side else {} for side in (pair.a, pair.b))
    names = [*a, *(name for name in b if name not in a)]
    if pair.a is None or pair.b is None:
        return ", ".join(f"{name} {(a or b)[name]}" for name in names)
    return ", ".join(
        f"{name} {a.get(name, 'none')} → {b.get(name, 'none')}"
        for name in names
        if a.get(name) != b.get(name)
    )


def _figures(quantity: Quantity) -> list[str]:
    a, b = quantity.a, quantity.b
    both = ["" if n is None else quantity_text(quantity, n) for n in (a, b)]
    if a is None or b is None:
        return [*both, "", ""]
    ratio = f"{b / a:{'.2f' if b > a / 10 else '.2g'}}" if a and a != b else ""
    return [*both, _signed(b - a, lambda change: quantity_text(quantity, change)) or "same", ratio]
