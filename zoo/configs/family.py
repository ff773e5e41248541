"""What is said of a family's configs: how they become specs, and how specs become configs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from specs.base import Component
from specs.model import Model
from zoo.configs.config import Config

Data = dict[str, Any]
"""A spec, part of one, or a config as plain data."""


class UnfitError(Exception):
    """A family has no field for something that a spec says; the text completes "no field for ..."."""


def nothing(head: Any) -> Data:
    """No fields."""
    return {}


@dataclass(frozen=True)
class HeadClass:
    """A class of the reference implementation that puts a head on the body: the kind of the head in a spec, how its
    spec is read from a config, and which fields say it."""

    kind: str
    read: Callable[[Config], Data] = nothing
    write: Callable[[Any], Data] = nothing


@dataclass(frozen=True)
class ConfigFamily:
    """The configs of one model_type.

    ``read`` gives the spec without name and head for a class, and ``write`` the fields of a spec but for those of its head;
    ``classes`` has the classes by name, the usual one first.  A written config is always read back and compared,
    so ``write`` need not look for what it cannot say; where a field cannot even be filled in it raises
    :class:`UnfitError`.
    """

    model_type: str
    read: Callable[[Config, str], Data]
    write: Callable[[Model], Data]
    classes: Mapping[str, HeadClass]

    def spec(self, config: Config, class_name: str) -> Data:
        """The spec of a config, without a name."""
        head = self.classes[class_name]
        body = self.read(config, class_name)
        return {**body, "head": {"kind": head.kind, **head.read(config)}}

    def config(self, model: Model, class_name: str) -> Data:
        """The config of a spec for one of the classes of its head."""
        head: Component = model.head
        return {**self.body_config(model, class_name), **self.classes[class_name].write(head)}

    def body_config(self, model: Model, class_name: str) -> Data:
        """The config of a spec for one of the classes, without the fields of its head."""
        return {"architectures": [class_name], "model_type": self.model_type, **self.write(model)}
