"""What is compared."""

from __future__ import annotations

from dataclasses import dataclass

from specs.model import Model


@dataclass(frozen=True)
class Contender:
    """A spec, and what it is called."""

    label: str
    spec: Model
