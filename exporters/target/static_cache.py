"""The number of slots of static KV caches."""

from __future__ import annotations

from exporters.target.targets import TARGETS, Target
from specs.base.errors import UserError, option_name
from specs.model.model import Model

OPTION = option_name("cache_length")

AROUND_IMAGE = 6
"""The least number of tokens around an image in verification."""


def cache_length(spec: Model, wanted: int | None) -> int:
    """The number of cache slots of a decoder: ``wanted``, but no more than the context length."""
    context = spec.context_length_of(spec.last_stack)
    return min(length for length in (wanted, context) if length is not None)


def check_cache(spec: Model, target: Target, wanted: int | None) -> None:
    """Raise :class:`specs.base.errors.UserError` unless a target supports ``wanted`` cache slots for a model."""
    if not spec.decodes or not target.static_cache:
        if wanted is not None:
            raise UserError(
                f"{OPTION} applies only to caches of fixed length\n  value: {wanted}; {_no_use(spec, target)}\n  Leave it out."
            )
        return
    context = spec.context_length_of(spec.last_stack)
    if wanted is not None and wanted < 1:
        raise UserError(f"{OPTION} must be at least 1\n  value: {wanted}\n  Use {context or 1024}.")
    if wanted is None and context is None:
        raise UserError(
            f"{option_name('target')} {target.name} needs the length of its caches, and {spec.name} has no context_length\n"
            f"  Pass {OPTION} 1024, or the longest sequence needed."
        )
    least = spec.vectors_per_image + AROUND_IMAGE if spec.connector and not spec.packs_images else 1
    if wanted is not None and wanted < least:
        raise UserError(
            f"{OPTION} must be at least {least}, for an image and some text\n  value: {wanted}\n  Use {least} or more."
        )
    if wanted is not None and context is not None and wanted > context:
        raise UserError(
            f"{OPTION} must not exceed the context_length, which is {context}\n  value: {wanted}\n"
            f"  Use {context}."
        )


def _no_use(spec: Model, target: Target) -> str:
    if not spec.decodes:
        return f"{spec.name} has no decoder, and so no cache"
    static = ", ".join(
        f"{option_name('target')} {other.name}" for other in TARGETS.values() if other.static_cache
    )
    return f"{option_name('target')} {target.name} has growing caches, unlike {static}"
