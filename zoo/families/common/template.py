"""Templates: specs with config fields in place of values.

A family states its spec once, as a template: a mapping that reads like a spec, with a :class:`Field` wherever a config
decides the value.  ``read`` fills the template from a config; ``write`` walks it beside a model and gives the config's
fields.  A written config is always read back and compared, so ``write`` does not check what the template fixes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specs.attention import MultiHeadShape
from specs.base import Component
from specs.block import BlockParts
from specs.latent import Latent
from specs.model import Model
from specs.position import NoPosition, PositionKind
from specs.stack import Stack
from zoo.families.common.config import Config

Data = dict[str, Any]
"""A spec, part of one, or a config as plain data."""

Template = Any
"""Plain data with fields in it."""

SEVERAL = "*"
"""The key of a field that decides several keys of its mapping."""

_OF_STACK = ("embedding", "position", "context_length")
"""Keys that a stack may state instead of the model."""


class UnfitError(Exception):
    """A family has no field for part of a spec; the text completes "no field for ..."."""


@dataclass(frozen=True)
class Place:
    """The place of a field in a model: a stack, the block that represents its layers, and the key of the field's mapping."""

    model: Model
    stack: Stack
    block: BlockParts
    key: str = ""

    @property
    def position(self) -> PositionKind:
        """The position in force in the block, or in the stack where the block has none."""
        own: PositionKind | None = getattr(self.block.attention, "position", None)
        if own is None or isinstance(own, NoPosition):
            return self.model.position_of(self.stack)
        return own

    def head_width(self) -> int:
        """The width of a head in the block, or else in the first that has any.  Raises :class:`UnfitError` for none."""
        attentions = (block.attention for block in (self.block, *self.stack.layer_blocks()))
        attention = next((each for each in attentions if each is not None), None)
        if not isinstance(attention, MultiHeadShape | Latent):
            raise UnfitError(f"attention kind {getattr(attention, 'kind', None)}")
        return attention.head_width(self.model.d_model)

    def part(self, owner: Any, key: str) -> Any:
        """The value under a key.  Raises :class:`UnfitError` where the kind of its owner has no such key."""
        if isinstance(owner, Model | Stack) and key in _OF_STACK:
            if key == "position":
                embedded = self.model.position_of(self.stack)
                return embedded if embedded.embedded else self.position
            return getattr(self.model, f"{key}_of")(self.stack)
        if isinstance(owner, Mapping):
            if key not in owner:
                raise UnfitError(f"{self.key} without {key}")
            return owner[key]
        if not hasattr(owner, key):
            what = f"kind {owner.kind}" if isinstance(owner, Component) else owner
            raise UnfitError(f"{self.key} {what}")
        return getattr(owner, key)


class Field:
    """One or more config fields that decide a value of a spec."""

    def read(self, config: Config) -> Any:
        """The value that a config states."""
        raise NotImplementedError

    def write(self, value: Any, place: Place) -> Data:
        """The config fields that state a value.  Raises :class:`UnfitError`."""
        raise NotImplementedError


def read(template: Template, config: Config) -> Any:
    """A template filled in from a config."""
    if isinstance(template, Field):
        return template.read(config)
    if not isinstance(template, Mapping):
        return template
    data: Data = {}
    for key, part in template.items():
        value = read(part, config)
        data.update(value if key == SEVERAL else {key: value})
    return data


def write(template: Template, value: Any, place: Place) -> Data:
    """The config fields of a template for a value.  A field that is written twice keeps the later value."""
    if isinstance(template, Field):
        return template.write(value, place)
    if not isinstance(template, Mapping) or value is None:
        return {}
    data: Data = {}
    for key, part in template.items():
        if key == SEVERAL:
            data |= write(part, value, place)
        elif _has_fields(part):
            data |= write(part, place.part(value, key), dataclasses.replace(place, key=key))
    return data


def _has_fields(template: Template) -> bool:
    if isinstance(template, Mapping):
        return any(map(_has_fields, template.values()))
    return isinstance(template, Field)
