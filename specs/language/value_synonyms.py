"""Names of values in other libraries and papers, for suggestions in errors."""

from __future__ import annotations

from specs.base import registry
from specs.base.kind_synonyms import KIND_SYNONYMS, normal
from specs.kinds.activation import ACTIVATIONS

_ACTIVATIONS = {**ACTIVATIONS, "relu_squared": "relu2", "squared_relu": "relu2"}


def value_meant(key: str, word: str, kind: object) -> dict[str, str] | None:
    """The words of a spec for the value ``word`` of a key in a part of a kind; None if unknown.

    They name a kind if the part must be of another: ``swiglu`` is no activation of an ``mlp``.
    """
    typed = normal(word)
    if key == "activation" and typed in _ACTIVATIONS:
        return {key: _ACTIVATIONS[typed]}
    for slot, names in KIND_SYNONYMS.items():
        meant = names.get(typed, {})
        if key in meant and kind in registry.kinds(slot):
            return {key: meant[key]} if kind == meant["kind"] else meant
    return None
