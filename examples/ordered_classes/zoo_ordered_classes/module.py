"""The module of the kind."""

import torch
from torch import Tensor, nn

from zoo.components.linear import Linear
from zoo.components.pooling import TokenSequence, pool
from zoo.context import BuildContext
from zoo.registry import builds
from zoo_ordered_classes.spec import OrderedClasses


@builds(OrderedClasses)
class OrderedClassesModule(nn.Module):
    def __init__(self, spec: OrderedClasses, context: BuildContext) -> None:
        super().__init__()
        self.score = Linear(context.d_model, 1, bias=False)
        self.thresholds = nn.Parameter(torch.zeros(spec.labels - 1))

    def forward(self, x: Tensor, tokens: TokenSequence) -> dict[str, Tensor]:
        return {"logits": self.score(pool(x, tokens, "mean")) + self.thresholds}
