"""The changes between two builds of an artefact in words: of its spec, and of its other inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from specs.forms.difference import differences
from specs.model.model import Model

_LISTED = 3


def spec_changes(earlier: Model, now: Model) -> str:
    """Return the changes that matter to a model, such as ``decoder.layers 12 → 6``, or else that its names changed."""
    changes = [change.text() for change in differences(earlier, now) if not change.follows]
    if not changes:
        return "name, description or expected counts of the spec"
    more = f" and {len(changes) - _LISTED} more" if len(changes) > _LISTED else ""
    return ", ".join(changes[:_LISTED]) + more


def input_changes(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Return the changes of weights, calibration inputs, options and versions, one phrase each."""
    if earlier.get("weights") != now["weights"]:
        yield f"weights {_weights_text(earlier.get('weights'))} \u2192 {_weights_text(now['weights'])}"
    if earlier.get("calibrate") != now["calibrate"]:
        yield "calibration inputs"
    for key in ("options", "versions"):
        recorded = earlier.get(key)
        before = recorded if isinstance(recorded, Mapping) else {}
        for name in sorted({*before, *now[key]}):
            if before.get(name) != now[key].get(name):
                yield f"{name} {_value_text(before.get(name))} \u2192 {_value_text(now[key].get(name))}"


def _value_text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_value_text, value)) or "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_weights_text(part)}" for name, part in value.items()) or "none"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return str(value)


def _weights_text(weights: object) -> str:
    """Return weights as shown in reports, with digests cut to 12 digits."""
    if not isinstance(weights, str):
        return "none"
    kind, _, digest = weights.partition(":")
    return f"{kind} {digest[:12]}" if kind == "files" else weights
