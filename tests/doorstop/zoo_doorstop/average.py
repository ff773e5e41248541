"""The kind of a mixer, without torch."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specs.base.registry import register
from specs.base.words import PartContext
from specs.kinds.mixer import MixerKind


@register("mixer", implementation="zoo_doorstop.average_module")
class Average(MixerKind):
    """A moving average of all tokens so far, times a weight."""

    kind: Literal["doorstop"] = "doorstop"
    title: ClassVar[str] = "Moving average"
    keeps: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """The share of the average that a token leaves in place."""

    def details(self, context: PartContext) -> list[str]:
        return [f"keeps {self.keeps:.0%} per token"]
