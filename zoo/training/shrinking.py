"""Small specs that train in minutes: fewer layers, and all widths in proportion, with heads wide enough to learn."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from pydantic import ValidationError

from specs.base.base import Spec
from specs.base.errors import UserError, option_name
from specs.base.roles import Role, fields_by_role, head_widths, pairs_scaled
from specs.model.model import Model
from zoo.core.reduced import fewer_experts, fewer_layers, rewritten_stacks, validated

HEAD_WIDTH = 16
"""Minimum head width: below it, heads are merged."""


def shrunk(spec: Model, layers: int | None = None, width: int | None = None) -> Model:
    """The spec with at most ``layers`` layers in each stack (or one per kind of block), and ``d_model`` set to ``width``.

    Mixtures keep the fewest experts that show how they are chosen.  Raises :class:`UserError` for a width that some
    component does not allow.
    """
    if layers is not None:
        spec = fewer_layers(spec, layers)
    if width is None:
        return spec
    if width % 2:
        raise UserError(
            f"{option_name('width')} must be even\n  value: {width}\n  Use {width - 1} or {width + 1}."
        )
    try:
        return _scaled_model(fewer_experts(spec), Fraction(width, spec.output_width))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise UserError(
            f"{spec.name} cannot be made {width} wide: {field} {first['msg']}\n"
            f"  value: {first['input']!r}\n  Try {option_name('width')} {(width // 64 + 1) * 64}, or set the widths in a spec."
        ) from None


def _scaled_model(spec: Model, ratio: Fraction) -> Model:
    """The model with all widths scaled.  Rotations are scaled last, by the largest change of the width of a head."""
    merged = [1]

    def scale(part: Spec, d_model: int) -> dict[str, Any]:
        changes: dict[str, Any] = {
            name: _scaled(value, ratio)
            for name, role, value in fields_by_role(part)
            if role is Role.WIDTH and value is not None
        }
        heads = [(name, value) for name, role, value in fields_by_role(part) if role is Role.HEADS]
        for name, count in heads:
            merged.append(_merged_heads(part, count, ratio, d_model))
            changes |= _scaled_heads(part, name, count, merged[-1], ratio, d_model)
        return changes

    def rotate(part: Spec) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        for name, role, value in fields_by_role(part):
            if role is Role.ROTATED and value is not None:
                changes[name] = _scaled(value, ratio * max(merged))
            elif role is Role.PER_ROTATED_PAIR:
                changes[name] = value[: _scaled(2 * len(value), ratio * max(merged)) // 2]
            elif role is Role.PAIRS_BY_AXIS:
                changes[name] = pairs_scaled(value, _scaled(2 * sum(value), ratio * max(merged)) // 2)
        return changes

    scaled = rewritten_stacks(spec, scale)
    return validated(scaled, rotate)


def _merged_heads(part: Spec, heads: int, ratio: Fraction, d_model: int) -> int:
    """Return the number of heads merged into one, so that the result is wide enough, and even where possible."""
    widths = [*head_widths(part).values()]
    width = (widths[0] if widths else None) or Fraction(d_model, heads)
    wide = [n for n in range(1, heads + 1) if heads % n == 0 and width * n * ratio >= min(HEAD_WIDTH, width)]
    even = [n for n in wide if (width * n * ratio) % 2 == 0]
    return (even or wide or [heads])[0]


def _scaled_heads(
    part: Spec, name: str, heads: int, merged: int, ratio: Fraction, d_model: int
) -> dict[str, Any]:
    """The heads of an attention, ``merged`` of them in one, and their widths."""
    changes: dict[str, Any] = {name: heads // merged}
    for field, role, value in fields_by_role(part):
        if role is Role.KEY_VALUE_HEADS and value:
            most = max(1, heads // merged // (heads // value))
            changes[field] = max(n for n in range(1, most + 1) if heads // merged % n == 0)
        elif field in head_widths(part):
            changes[field] = _scaled(value or Fraction(d_model, heads), ratio * merged)
    return changes


def _scaled(width: int | Fraction, ratio: Fraction) -> int:
    """A width times a ratio, at least 2, and even where the width was."""
    scaled = max(int(width * ratio), 2)
    return scaled + (scaled % 2 if width % 2 == 0 else 0)
