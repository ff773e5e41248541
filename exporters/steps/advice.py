"""Operations that one changed line would fuse: the same model in another precision, or with heads of another width."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from exporters.steps.graphs import Graphs
from exporters.steps.options import ExportOptions
from exporters.steps.plan import Plan
from exporters.target.targets import TARGETS
from specs.base.base import Spec
from specs.base.roles import Role, fields_by_role, head_widths
from specs.model.model import Model
from zoo.core.reduced import checked, fewer_layers, rewritten_stacks

HEAD_WIDTHS = (32, 64, 128, 256)
"""The head widths that fused attention is made for."""

SLOTS = 64
"""The length of a fixed cache, which decides nothing here."""


@dataclass(frozen=True)
class Advice:
    """A change of one line, and what it would fuse."""

    change: str
    fuses: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.change}: {', '.join(self.fuses)}"


def advice(spec: Model, options: ExportOptions) -> list[Advice]:
    """The changes of one line that leave fewer operations unfused, for the target of the options.

    Only a model of few layers is traced, without weights; where nothing is left unfused, nothing is tried.
    """
    small = fewer_layers(spec)
    unfused = _unfused(small, options)
    advised = []
    for change, other, settings in _changes(small, options) if unfused else ():
        if fused := unfused - _unfused(other, settings):
            advised.append(Advice(change, tuple(sorted(fused))))
    return advised


def _changes(spec: Model, options: ExportOptions) -> Iterator[tuple[str, Model, ExportOptions]]:
    """Each change as a line that a user would write, the changed model, and the changed options."""
    if options.precision == "fp32":
        yield "--precision fp16", spec, options.changed(precision="fp16")
    for width in sorted(_head_widths(spec) - set(HEAD_WIDTHS)):
        other = min((fused for fused in HEAD_WIDTHS if fused > width), default=HEAD_WIDTHS[-1])
        try:
            yield f"heads {other} wide instead of {width}", _with_head_width(spec, width, other), options
        except ValidationError:  # a kind does not allow it
            continue


def _head_widths(spec: Model) -> set[int]:
    widths = set[int]()

    def note(part: Spec, d_model: int) -> dict[str, Any]:
        widths.update(width for _, width in _stated(part, d_model))
        return {}

    rewritten_stacks(spec, note)
    return widths


def _with_head_width(spec: Model, width: int, other: int) -> Model:
    """The model with heads of another width.  Raises :class:`pydantic.ValidationError` where a kind does not allow it."""

    def widen(part: Spec, d_model: int) -> dict[str, Any]:
        return {name: other for name, value in _stated(part, d_model) if value == width}

    return checked(rewritten_stacks(spec, widen))


def _stated(part: Spec, d_model: int) -> Iterator[tuple[str, int]]:
    """The width of the heads of a part that has heads of one width: the name of its field, and its value."""
    widths = [*head_widths(part).items()]
    heads = [value for _, role, value in fields_by_role(part) if role is Role.HEADS]
    if len(widths) == 1 and heads:
        name, value = widths[0]
        yield name, value or d_model // heads[0]


def _unfused(spec: Model, options: ExportOptions) -> set[str]:
    """The operations that are not fused somewhere."""
    if TARGETS[options.target].static_cache and options.cache_length is None:
        options = options.changed(cache_length=SLOTS)
    graphs = Graphs.of(Plan.make(spec, options)).graphs
    return {reason.partition(":")[0] for graph in graphs for reason in graph.unfused}
