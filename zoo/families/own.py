"""Checkpoints under the parameters' own names: as zoo writes them, and as the classes of ``zoo convert --remote-code`` do."""

from __future__ import annotations

from collections.abc import Mapping

from specs.model.model import Model
from zoo.families.common.family import Family
from zoo.families.common.tensors import StoredParameter, TensorRules, Tensors
from zoo.families.common.transforms import Shape

HEAD_LAYERS = {"vocabulary": "lm_head", "labels": "score", "span": "span"}
"""The layer of a head -> the name under which a class of transformers has it, beside the body."""


class _OwnTable(TensorRules):
    def find(self, parameter: str) -> StoredParameter:
        layer, _, leaf = parameter.removeprefix("head.").partition(".")
        of_head = parameter.startswith("head.") and layer in HEAD_LAYERS
        in_class = f"{HEAD_LAYERS[layer]}.{leaf}" if of_head else f"model.{parameter}"
        return StoredParameter((parameter, in_class), (parameter,))


class _OwnNames(Tensors):
    def table(self, spec: Model, parameters: Mapping[str, Shape]) -> TensorRules:
        return _OwnTable((), spec, parameters)


OWN = _OwnNames("zoo", ())
FAMILIES = (Family("zoo", OWN),)
