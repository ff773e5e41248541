"""The subject of a comparison."""

from __future__ import annotations

from dataclasses import dataclass

from specs.model.model import Model


@dataclass(frozen=True)
class Contender:
    """A spec with its label."""

    label: str
    spec: Model
