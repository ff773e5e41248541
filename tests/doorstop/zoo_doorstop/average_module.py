"""The module of the mixer."""

import math

import torch
from torch import Tensor, nn

from zoo import functional
from zoo.components.mixer import Mixer, MixerContext, State, StateTensor
from zoo.context import BuildContext
from zoo.registry import builds
from zoo_doorstop.average import Average


@builds(Average)
class AverageModule(Mixer):
    """h_t = keeps * h_(t-1) + (1 - keeps) * x_t, for all tokens at once; padding leaves h as it was."""

    def __init__(self, spec: Average, context: BuildContext) -> None:
        super().__init__()
        self.keeps = spec.keeps
        self.weight = nn.Parameter(torch.empty(context.d_model))

    @property
    def state(self) -> tuple[StateTensor, ...]:
        return (StateTensor("average", (len(self.weight),)),)

    def forward(self, x: Tensor, context: MixerContext, past: State | None) -> tuple[Tensor, State]:
        if context.real is None:
            real = functional.positions_from(1, x.shape[1], x)[None].clamp(max=1).to(x.dtype)  # 1 T
        else:
            real = context.real.to(x.dtype)  # B T
        count = real.cumsum(1)  # B T: real tokens up to each
        apart = count[:, :, None] - count[:, None, :]  # B T T
        seen = (apart + 1.0).clamp(0, 1) * real[:, None, :]
        shares = (apart.clamp(min=0) * math.log(self.keeps)).exp() * seen * (1 - self.keeps)
        average = shares @ x  # B T D
        if past is not None:
            average = average + (count * math.log(self.keeps)).exp()[:, :, None] * past[0][:, None]
        return average * self.weight, (average[:, -1],)
