"""How long caches are that do not grow."""

from __future__ import annotations

from exporters.targets import TARGETS, Target
from specs.errors import UserError, option_name
from specs.model import Model

OPTION = option_name("cache_length")


def cache_length(spec: Model, wanted: int | None) -> int:
    """The places of a decoder's caches: as many as wanted, or as its context has; a twin's context may be shorter."""
    context = spec.context_length_of(spec.last_stack)
    return min(length for length in (wanted, context) if length is not None)


def check_cache(spec: Model, target: Target, wanted: int | None) -> None:
    """Raise :class:`specs.errors.UserError` unless a target can have caches for a model, of the length that is wanted."""
    if spec.architecture == "encoder" or not target.static_cache:
        if wanted is not None:
            raise UserError(f"{OPTION} {wanted} has no use: {_no_use(spec, target)}\n  leave it out")
        return
    context = spec.context_length_of(spec.last_stack)
    if wanted is not None and wanted < 1:
        raise UserError(f"{OPTION} must be at least 1; it is {wanted}\n  {context or 1024} would work")
    if wanted is None and context is None:
        raise UserError(
            f"{option_name('target')} {target.name} needs the length of its caches, and {spec.name} has no context_length\n"
            f"  give {OPTION} 1024, or as many tokens as a sequence is to have"
        )
    if wanted is not None and context is not None and wanted > context:
        raise UserError(
            f"{OPTION} must not exceed the context_length, which is {context}; it is {wanted}\n"
            f"  {context} would work"
        )


def _no_use(spec: Model, target: Target) -> str:
    if spec.architecture == "encoder":
        return f"{spec.name} is an encoder, which has no cache"
    static = ", ".join(
        f"{option_name('target')} {other.name}" for other in TARGETS.values() if other.static_cache
    )
    return f"caches grow here; they do not with {static}"
