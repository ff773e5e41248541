"""The kind, without torch."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specs.base.registry import register
from specs.base.roles import Role
from specs.base.words import Output, PartContext, Step, product
from specs.kinds.head import HeadKind


@register("head", implementation="zoo_ordered_classes.module")
class OrderedClasses(HeadKind):
    """Scores of ordered classes (CORAL: Cao et al., 2020): whether a sequence exceeds each class but the last, from one score and a
    threshold per class. Gives `logits`, batch x (labels - 1)."""

    kind: Literal["ordered_classes"] = "ordered_classes"
    title: ClassVar[str] = "Ordered classes"
    labels: Annotated[int, Field(ge=2), Role.LABELS]
    """Number of classes, such as 5 for one to five stars."""

    def steps(self, context: PartContext) -> Iterator[Step | Output]:
        yield Step("Pooling", details=("mean of tokens",))
        yield Step(self.heading, "", ("one score", f"{self.labels - 1} thresholds"))
        yield Output("Logits", product("B", self.labels - 1))
