"""Templates: specs with config fields in place of values.

A family states its spec once, as a template: a mapping that reads like a spec, with a :class:`Field` wherever a config
decides the value.  ``read`` fills the template from a config; ``write`` walks it beside a model and gives the config's
fields.  A written config is always read back and compared, so ``write`` does not check what the template fixes.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Any, ClassVar

from specs.base.base import Component
from specs.base.registry import kinds, slots
from specs.kinds.attention import MultiHeadShape
from specs.kinds.block import BlockParts
from specs.kinds.latent import Latent
from specs.kinds.position import NoPosition, PositionKind
from specs.model.model import Model
from specs.model.stack import Stack
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
class FieldContext:
    """The place of a field in a model: a stack, the block that represents its layers, and the key of the field's mapping."""

    model: Model
    stack: Stack
    block: BlockParts
    key: str = ""

    @classmethod
    def of(cls, model: Model, key: str) -> FieldContext:
        """The context of a part beside the layers, such as the head, in the first layer of the last stack."""
        return cls(model, model.last_stack, model.last_stack.layer_blocks()[0], key)

    @property
    def position(self) -> PositionKind:
        """The position in force in the block, or in the stack where the block has none."""
        own = self.block.own_position
        if own is None or isinstance(own, NoPosition):
            return self.model.position_of(self.stack)
        return own

    def head_width(self) -> int:
        """The width of a head in the block, or else in the first that has any.  Raises :class:`UnfitError` for none."""
        attentions = (block.attention for block in (self.block, *self.stack.layer_blocks()))
        attention = next((candidate for candidate in attentions if candidate is not None), None)
        if not isinstance(attention, MultiHeadShape | Latent):
            raise UnfitError(f"attention kind {getattr(attention, 'kind', None)}")
        return attention.head_width(self.model.d_model)

    def part(self, owner: Any, key: str, kind: str | None = None) -> Any:
        """The value under a key.

        Raises :class:`UnfitError` where the kind of its owner has no such key, or one of another type than ``kind``.
        """
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
        if isinstance(owner, Component) and kind is not None and not _alike(type(owner), kind, key):
            raise UnfitError(f"{self.key} kind {owner.kind}")
        return getattr(owner, key)


@functools.cache
def _alike(spec: type[Component], kind: str, key: str) -> bool:
    """Whether a key of a component has the type that it has in another kind of the same slot."""
    ours = [
        kinds(slot) for slot in slots() if any(component.spec is spec for component in kinds(slot).values())
    ]
    wanted = [components[kind].spec.model_fields[key].annotation for components in ours if kind in components]
    return key in spec.model_fields and spec.model_fields[key].annotation in wanted


class Field:
    """One or more config fields that decide a value of a spec.

    ``component`` are the classes of the values where these are components: those of other kinds are not written.
    """

    component: ClassVar[type | UnionType | tuple[()]] = ()

    def read(self, config: Config) -> Any:
        """The value that a config states."""
        raise NotImplementedError

    def write(self, value: Any, context: FieldContext) -> Data:
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


def write(template: Template, value: Any, context: FieldContext) -> Data:
    """The config fields of a template for a value.  A field that is written twice keeps the later value.

    Raises :class:`UnfitError` for a component of another kind than the template's, as far as reading back would not show it.
    """
    if isinstance(template, Field):
        chosen = isinstance(value, Component) or (value is None and template.component != ())
        if chosen and not isinstance(value, template.component):
            raise UnfitError(f"{context.key} {'null' if value is None else f'kind {value.kind}'}")
        return template.write(value, context)
    if not isinstance(template, Mapping) or value is None:
        return {}
    data: Data = {}
    kind = template.get("kind")
    for key, part in template.items():
        if key == SEVERAL:
            data = joined(data, write(part, value, context))
        elif _has_fields(part):
            inner = context.part(value, key, kind if isinstance(kind, str) else None)
            data = joined(data, write(part, inner, dataclasses.replace(context, key=key)))
    return data


def joined(data: Data, more: Data) -> Data:
    """Config fields with further ones: mappings that both state are joined, and of other fields the later value is kept."""
    inner = {
        name: {**data[name], **value}
        for name, value in more.items()
        if isinstance(value, dict) and isinstance(data.get(name), dict)
    }
    return {**data, **more, **inner}


def _has_fields(template: Template) -> bool:
    if isinstance(template, Mapping):
        return any(map(_has_fields, template.values()))
    return isinstance(template, Field)
