"""Strategies for the fields that configs of many families share, and how a configuration is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

VOCAB = st.integers(5, 90)
LAYERS, FEW_LAYERS = st.integers(1, 4), st.integers(1, 3)
HIDDEN = st.integers(1, 70)
FLAG = st.booleans()
ACTIVATION = st.sampled_from(["gelu", "gelu_new", "relu", "silu"])
HEAD_DIM = st.integers(2, 12).map(lambda pairs: 2 * pairs)
"""The width of a head that rotates, whatever hidden_size is."""
WINDOW = st.integers(2, 15)
EPS = st.sampled_from([1e-6, 1e-5, 1e-2])


def flags(*names: str) -> dict[str, Any]:
    """Fields that are true or false."""
    return dict.fromkeys(names, FLAG)


def lists(values: Any, length: int) -> Any:
    """Lists of a length, of values or of what a strategy draws."""
    each = values if isinstance(values, st.SearchStrategy) else st.sampled_from(values)
    return st.lists(each, min_size=length, max_size=length)


def drawn(data: st.DataObject, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The values of fields, some of which are strategies; of inner configs as well."""
    return {name: _drawn(data, name, value) for name, value in fields.items()}


def _drawn(data: st.DataObject, name: str, value: Any) -> Any:
    if isinstance(value, st.SearchStrategy):
        return data.draw(value, name)
    return drawn(data, value) if isinstance(value, dict) else value
