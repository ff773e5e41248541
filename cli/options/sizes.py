"""Data-file sizes of a model in every precision, as the exporter would write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.core.units import byte_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specs.model.model import Model


def file_sizes(spec: Model, target: str, *, needed: bool = False) -> dict[str, int]:
    """Bytes by precision; empty for a model that cannot be exported, unless ``needed``."""
    from exporters.steps.stored_size import stored_sizes
    from exporters.target.targets import TARGETS
    from specs.base.errors import UserError
    from specs.base.suggest import suggestion

    if target not in TARGETS:
        raise UserError(f"--target {target!r} is unknown\n  {suggestion(target, TARGETS)}")
    try:
        return stored_sizes(spec, target)
    except UserError:
        if needed:
            raise
        return {}


def precision_sizes(sizes: Mapping[str, int]) -> str:
    """The sizes as text, such as ``fp32 497.8 MB, fp16 248.9 MB``."""
    return ", ".join(f"{precision} {byte_text(size)}" for precision, size in sizes.items())
