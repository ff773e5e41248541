"""Reduced models of presets whose kernels are those of the presets themselves: widths on which an engine's choice depends are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

from pydantic import ValidationError

from specs.base.roles import Role
from specs.language.load import load
from specs.model.model import Model
from tests.exporters.reduced_presets import LEAST_WIDTH
from zoo.core import reduced

BLOCK = 32
"""Quantized matrices are in blocks of this size or larger, which divide nearly all widths of the presets."""

Narrow = Callable[[Any, int, int], dict[str, Any]]
"""The changed fields of a part, given the width of its stack and a divisor."""


@cache
def wide_heads(name: str) -> Model:
    """The reduced model of a preset whose heads keep their width, on which fused attention depends."""

    def narrow(part: Any, d_model: int, divisor: int) -> dict[str, Any]:
        widths = [*reduced._stated_widths(part, d_model)]
        return {
            **{name: reduced._divided(value, divisor) for name, role, value in widths if role is Role.WIDTH},
            **{name: value for name, role, value in widths if role is Role.HEAD_WIDTH},
        }

    return next(_narrowed(name, narrow))


@cache
def whole_blocks(name: str) -> Model:
    """The reduced model of a preset in which blocks divide every width that they divide in the preset."""

    def narrow(part: Any, d_model: int, divisor: int) -> dict[str, Any]:
        changes = reduced.narrower_fields(part, d_model, divisor)
        for name, role, value in reduced._stated_widths(part, d_model):
            if role is Role.WIDTH and value % BLOCK == 0:
                changes[name] = -(-changes[name] // BLOCK) * BLOCK
        return changes

    return next(_narrowed(name, narrow))


def _narrowed(name: str, narrow: Narrow) -> Iterator[Model]:
    """The narrowest model that the kinds allow; the last one has all widths."""
    small = reduced.small_tables(reduced.small_inputs(reduced.fewer_layers(load(name))))
    shallow = reduced.short_switch_lengths(reduced.fewer_experts(reduced.small_limits(small)))
    for divisor in (64, 32, 16, 8, 4, 2):
        try:
            found = reduced.checked(reduced.rewritten_stacks(shallow, partial(narrow, divisor=divisor)))
        except ValidationError:
            continue
        if found.d_model >= LEAST_WIDTH:
            yield found
    yield shallow
