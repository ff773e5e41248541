"""A family: its config fields, its classes and its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from specs.model.model import Model
from zoo.families.common.config import Config
from zoo.families.common.template import Data, FieldContext, Template, UnfitError, read, write
from zoo.families.common.tensors import Tensors


@dataclass(frozen=True)
class HeadClass:
    """A class of the reference implementation: the kind of its head in a spec, and the template of the head's other keys.

    ``body`` is the template of the body where it differs from the family's, and ``also`` another kind that the template of the head
    may read.
    """

    kind: str
    head: Mapping[str, Template] = field(default_factory=dict)
    body: Template = None
    also: str = ""

    def has(self, kind: str) -> bool:
        """Whether the class may have a head of a kind."""
        return kind in (self.kind, self.also)


@dataclass(frozen=True)
class Family:
    """The configs and checkpoints of one model_type.

    ``body`` is the template of a spec without name and head; ``classes`` are the classes by name, the default first.
    ``refused`` are classes that are not supported, each with what a spec cannot express of it.
    ``fixed`` gives fields their only supported value, which may be a template, and the reason; ``ignored`` are fields that do
    not change the spec, and ``naming`` those of them that choose the names of tensors, with the choice that is written.  A family
    that only names tensors has no body.
    """

    model_type: str
    tensors: Tensors
    body: Template = None
    classes: Mapping[str, HeadClass] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, tuple[Template, str]] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    naming: Mapping[str, Any] = field(default_factory=dict)

    def spec(self, config: Config, class_name: str) -> Data:
        """The spec of a config, without a name."""
        head = self.classes[class_name]
        return {**self.body_spec(config, class_name), "head": {"kind": head.kind, **read(head.head, config)}}

    def body_spec(self, config: Config, class_name: str) -> Data:
        """The spec of a config, without name and head."""
        data: Data = read(self._body(class_name), config)
        for name, (value, because) in self.fixed.items():
            config.must(name, read(value, config), because)
        config.ignore(*self.ignored, *self.naming)
        return data

    def config(self, model: Model, class_name: str) -> Data:
        """Return the config of a spec for one of the classes of its head.

        Where head and body share a field, it is written for the body.
        """
        body = self.body_config(model, class_name)
        context = FieldContext.of(model, "head")
        head = write(self.classes[class_name].head, model.head, context)
        return {**body, **{name: value for name, value in head.items() if name not in body}}

    def body_config(self, model: Model, class_name: str) -> Data:
        """The config of a spec for one of the classes, without the fields of its head.  Raises :class:`UnfitError`."""
        body = self._body(class_name)
        if body is None:
            raise UnfitError(f"a body without the parts beside it in {class_name}")
        model = _seen_both_ways(model, body)
        start = {"architectures": [class_name], "model_type": self.model_type}
        if body["architecture"] != model.architecture:
            raise UnfitError(f"architecture {model.architecture}")
        stack = body["encoder" if model.architecture == "encoder" else "decoder"]
        block = stack.standing_for(model.last_stack)
        return {**start, **write(body, model, FieldContext(model, model.last_stack, block))}

    def _body(self, class_name: str) -> Template:
        return self.classes[class_name].body or self.body


def _seen_both_ways(model: Model, body: Template) -> Model:
    """Return an encoder as a decoder without a causal mask, for families that state the mask."""
    decoder = body.get("decoder") if isinstance(body, Mapping) else None
    states = decoder is not None and "causal" in getattr(decoder, "more", {})
    if not states or model.architecture != "encoder" or model.encoder is None or model.is_causal("encoder"):
        return model
    stack = model.encoder.model_copy(update={"causal": False})
    return model.model_copy(update={"architecture": "decoder", "encoder": None, "decoder": stack})
