"""Additional outputs of an export as users write them: ``hidden:9,-2``, ``decoder.cross:all`` or ``last_hidden_state``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from specs.base.base import custom_error

Kind = Literal["hidden", "attention", "cross", "last_hidden_state"]

OUTPUT_NAMES: dict[Kind, str] = {
    "hidden": "hidden_states",
    "attention": "attentions",
    "cross": "cross_attentions",
    "last_hidden_state": "last_hidden_state",
}
"""The name of each kind's outputs, as in transformers; the number of the layer follows."""

_FORM = re.compile(
    r"(?:(?P<stack>[a-z]+)\.)?(?:(?P<kind>hidden|attention|cross):(?P<layers>all|-?\d{1,6}(?:,-?\d{1,6})*)|last_hidden_state)"
)


@dataclass(frozen=True)
class RequestedOutputs:
    """Outputs of one kind: the stack, if it is named, and the numbers of its layers; None for all."""

    stack: str | None
    kind: Kind
    layers: tuple[int, ...] | None


def requested(text: str) -> RequestedOutputs:
    """The outputs that a value names.  Raises a pydantic error for another form."""
    match = _FORM.fullmatch(text.replace(" ", ""))
    if match is None:
        raise custom_error(
            "must be hidden:LAYERS, attention:LAYERS, cross:LAYERS or last_hidden_state",
            "Use hidden:9,-2 or attention:all, for example, or decoder.hidden:9 if the model has several stacks.",
        )
    layers = match["layers"]
    numbers = None if layers in (None, "all") else tuple(map(int, layers.split(",")))
    return RequestedOutputs(match["stack"], match["kind"] or "last_hidden_state", numbers)  # type: ignore[arg-type]
