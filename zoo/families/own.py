"""Checkpoints under the parameters' own names."""

from __future__ import annotations

from collections.abc import Mapping

from specs.model.model import Model
from zoo.families.common.family import Family
from zoo.families.common.tensors import StoredParameter, TensorRules, Tensors
from zoo.families.common.transforms import Shape


class _OwnTable(TensorRules):
    def find(self, parameter: str) -> StoredParameter:
        return StoredParameter((parameter,), (parameter,))


class _OwnNames(Tensors):
    def table(self, spec: Model, parameters: Mapping[str, Shape]) -> TensorRules:
        return _OwnTable((), spec, parameters)


OWN = _OwnNames("zoo", ())
FAMILIES = (Family("zoo", OWN),)
