"""Families of an encoder of texts and one of images whose vectors are compared, such as CLIP and SigLIP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from specs.model.model import Model
from specs.model.stack import StackName
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.parts import alone
from zoo.families.common.template import Data, FieldContext, Template, UnfitError, read, write
from zoo.families.common.tensors import Rule

CONFIGS: Mapping[StackName, str] = {"text": "text_config", "image": "vision_config"}
"""The field that holds the config of each stack."""


@dataclass(frozen=True)
class Tower:
    """One of the two encoders: its family, the class that its config is read as, and the template of its head."""

    family: Family
    class_name: str
    head: Mapping[str, Template]


@dataclass(frozen=True)
class DualEncoderFamily(Family):
    """Configs that hold one for each of ``towers``; ``shared`` are keys of both heads that the whole config decides.

    ``second`` is whether configs may hold a second config of each, which goes before the first.
    """

    towers: Mapping[StackName, Tower] = field(default_factory=dict)
    shared: Mapping[str, Template] = field(default_factory=dict)
    second: bool = False

    def spec(self, config: Config, class_name: str) -> Data:
        self.body_spec(config, class_name)  # it has no body: the fields that are fixed or ignored
        shared = read(self.shared, config)
        stacks = {name: self._stack(self._tower(config, name), name, shared) for name in self.towers}
        text = stacks["text"]
        of_model: Data = {
            key: text.pop(key) for key in ("vocab_size", "position", "initialization") if key in text
        }
        image = {key: value for key, value in stacks["image"].items() if key != "initialization"}
        if image.get("position") == of_model["position"]:
            del image["position"]
        return {
            "architecture": "dual-encoder",
            "d_model": text["d_model"],
            **of_model,
            "text": text,
            "image": image,
            "head": {"kind": "contrastive", **read(self.classes[class_name].head, config)},
        }

    def _tower(self, config: Config, name: StackName) -> Config:
        """The config of one of the encoders."""
        second = f"{CONFIGS[name]}_dict"
        if self.second and config.has(second):
            config.ignore(CONFIGS[name])
            return config.inner(second)
        return config.inner(CONFIGS[name])

    def _stack(self, part: Config, name: StackName, shared: Data) -> Data:
        """The stack of a spec with the keys that a model of this stack alone would have."""
        tower = self.towers[name]
        body = tower.family.body_spec(part, tower.class_name)
        head = {"kind": "pooled", **read(tower.head, part), **shared}
        stack = body.pop("encoder")
        body.pop("architecture")
        return {**stack, **body, "head": head}

    def config(self, model: Model, class_name: str) -> Data:
        if model.architecture != "dual-encoder":
            raise UnfitError(f"architecture {model.architecture}")
        context = FieldContext.of(model, "head")
        data: Data = {"architectures": [class_name], "model_type": self.model_type}
        for name in self.towers:
            data[CONFIGS[name]] = self._tower_config(model, name)
        assert model.text is not None
        data |= write(self.shared, model.text.head, context)
        return data | write(self.classes[class_name].head, model.head, context)

    def _tower_config(self, model: Model, name: StackName) -> Data:
        tower, one = self.towers[name], tower_of(model, name)
        body = tower.family.body_config(one, tower.class_name)
        context = FieldContext.of(one, "head")
        del body["architectures"]
        return {**write(tower.head, one.head, context), **write(self.shared, one.head, context), **body}


def tower_of(model: Model, name: StackName) -> Model:
    """One encoder of a dual encoder as a model of its own, with its head."""
    stack = getattr(model, name)
    none: dict[str, Any] = {} if model.embedding_of(stack).takes_tokens else {"vocab_size": None}
    changes = {"text": None, "image": None, "head": stack.head, **none}
    return alone(model, "encoder", stack.model_copy(update={"head": None}), changes)


def rules_of_tower(name: StackName, rules: tuple[Rule, ...], prefix: str = "") -> tuple[Rule, ...]:
    """The rules of a family for its encoder in a dual encoder, stored under a ``prefix``."""

    def ours(parameter: str) -> str:
        module, _, rest = parameter.partition(".")
        return f"{name}.{rest}" if module == "encoder" else f"{name}_{module}.{rest}"

    return tuple(
        replace(rule, stored=f"{prefix}{rule.stored}", parameters=tuple(map(ours, rule.parameters)))
        for rule in rules
    )
