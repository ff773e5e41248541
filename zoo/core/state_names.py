"""The names of a decoder's state as inputs and outputs of its graphs, as clients expect them.

What grows with every token is ``past_key_values.0.key`` and ``present.0.key``; what has a constant size is ``past_conv.0`` and
``present_conv.0``.  Layers are counted from 0, those without such a state included.
"""

from __future__ import annotations

from typing import Literal

Moment = Literal["past", "present"]
MOMENTS: tuple[Moment, Moment] = ("past", "present")
"""Inputs, and outputs."""


def state_name(moment: Moment, layer: int | str, tensor: str, *, grows: bool, part: str = "") -> str:
    """The name of a tensor in the state of a layer; ``part`` tells a decoder's own keys and values from an encoder's.

    A text in the place of the layer, such as ``%d``, makes a pattern of names.
    """
    if not grows:
        return f"{moment}_{tensor}.{layer}"
    infix = f"{part}." if part else ""
    return f"{'past_key_values' if moment == 'past' else 'present'}.{layer}.{infix}{tensor}"


def is_past(name: str) -> bool:
    """Whether an input holds a state."""
    return name.startswith("past_")


def is_present(name: str) -> bool:
    """Whether an output holds a state."""
    return name.startswith(("present.", "present_"))


def present_of(past: str) -> str:
    """The output that follows an input: ``past_conv.0`` -> ``present_conv.0``."""
    return past.replace("past_key_values", "present", 1).replace("past_", "present_", 1)


def past_of(present: str) -> str:
    """The input that an output follows: ``present.0.key`` -> ``past_key_values.0.key``."""
    return present.replace("present.", "past_key_values.", 1).replace("present_", "past_", 1)
