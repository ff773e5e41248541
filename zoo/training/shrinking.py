"""Small specs that can be trained at once: fewer layers, and all widths in proportion, with heads wide enough to learn."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from pydantic import ValidationError

from specs.errors import UserError, option_name
from specs.model import Model
from zoo.twin import fewer_experts, twin

HEAD_WIDTH = 16
"""Heads become fewer rather than narrower than this."""

_OF_STREAM = ("d_model", "hidden", "width", "query_rank", "kv_rank")
_OF_HEAD = ("head_dim", "rope_dim", "value_dim")


def shrunk(spec: Model, layers: int | None = None, width: int | None = None) -> Model:
    """The spec with at most so many layers in each stack (or its kinds of blocks), and so wide a residual stream.

    Mixtures keep no more experts than show how they are chosen.  Raises :class:`UserError` for a width that some
    component does not allow.
    """
    if layers is not None:
        spec = twin(spec, layers)
    if width is None:
        return spec
    if width % 2:
        raise UserError(
            f"{option_name('width')} must be even\n  value: {width}\n  {width - 1} or {width + 1} would work"
        )
    data = fewer_experts(spec).model_dump(exclude={"expect"})
    ratio = Fraction(width, spec.d_model)
    widening = _scale(data, ratio, spec.d_model)
    _scale_rotations(data, ratio * widening)
    try:
        return Model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise UserError(
            f"{spec.name} cannot be made {width} wide: {place} {first['msg']}\n"
            f"  value: {first['input']!r}\n  {option_name('width')} {_rounder(width)} may work, or widths in a spec of your own"
        ) from None


def _rounder(width: int) -> int:
    """The next multiple of 64."""
    return (width // 64 + 1) * 64


def _scale(data: Any, ratio: Fraction, d_model: int) -> int:
    """Scale the widths of plain spec data in place; gives into how many a head of the last attention was joined."""
    joined = 1
    if isinstance(data, list | tuple):
        for item in data:
            joined = max(joined, _scale(item, ratio, d_model))
    if not isinstance(data, dict):
        return joined
    for value in data.values():
        joined = max(joined, _scale(value, ratio, d_model))
    if "heads" in data:
        joined = _scale_heads(data, ratio, d_model)
    for key in _OF_STREAM:
        if isinstance(data.get(key), int):
            data[key] = _scaled(data[key], ratio)
    return joined


def _scale_heads(data: dict[str, Any], ratio: Fraction, d_model: int) -> int:
    """Make the heads of an attention narrower, and join so many into one that they are wide enough."""
    heads = data["heads"]
    width = data.get("head_dim") or Fraction(d_model, heads)
    wide = [n for n in range(1, heads + 1) if heads % n == 0 and width * n * ratio >= min(HEAD_WIDTH, width)]
    even = [n for n in wide if (width * n * ratio) % 2 == 0]
    joined = (even or wide or [heads])[0]
    data["heads"] = heads // joined
    if data.get("kv_heads"):
        groups = heads // data["kv_heads"]
        most = max(1, data["heads"] // groups)
        data["kv_heads"] = max(n for n in range(1, most + 1) if data["heads"] % n == 0)
    data["head_dim"] = width  # as it is, until it is scaled as the others
    for key in _OF_HEAD:
        if isinstance(data.get(key), int | Fraction):
            data[key] = _scaled(data[key], ratio * joined)
    return joined


def _scale_rotations(data: Any, ratio: Fraction) -> None:
    """Scale what is said of the dimensions of a head that are rotated, in place."""
    if isinstance(data, list | tuple):
        for item in data:
            _scale_rotations(item, ratio)
    if not isinstance(data, dict):
        return
    for value in data.values():
        _scale_rotations(value, ratio)
    if isinstance(data.get("dimensions"), int):
        data["dimensions"] = _scaled(data["dimensions"], ratio)
    for key in ("short_factor", "long_factor"):
        if isinstance(data.get(key), list | tuple):  # one number per pair of dimensions
            data[key] = data[key][: _scaled(2 * len(data[key]), ratio) // 2]


def _scaled(width: int | Fraction, ratio: Fraction) -> int:
    """A width times a ratio, even where it was, and 2 at least."""
    scaled = max(int(width * ratio), 2)
    return scaled + (scaled % 2 if width % 2 == 0 else 0)
