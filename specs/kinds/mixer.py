"""The slot of what mixes tokens through a state of constant size, where attention keeps every token."""

from typing import Annotated

from specs.base.base import Component, Slot

Mixer = Annotated[Component, Slot("mixer")]
