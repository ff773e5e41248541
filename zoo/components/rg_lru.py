"""RG-LRU: channels that decay at rates which gates choose.

Shapes: batch B, tokens T, channels D, blocks of channels H, their width K, kernel width W.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import specs.kinds.rg_lru as spec
from zoo import functional
from zoo.components.activation import activation
from zoo.components.block_linear import BlockLinear
from zoo.components.causal_convolution import CausalConvolution
from zoo.components.linear import Linear
from zoo.components.mixer import Mixer, MixerContext, State, StateTensor
from zoo.context import BuildContext
from zoo.core.initialization import Distribution
from zoo.core.precision import wide
from zoo.core.sharding import COLUMNS, HEADS, ROWS, SHARED, Sharding, counted
from zoo.registry import builds

SHARPNESS = 8.0
"""The largest rate of decay, in units of softplus(rate)."""
LEAST = 1e-12
"""The smallest square whose root is taken, so that gradients are finite."""


@builds(spec.RGLRU)
class RGLRU(Mixer):
    """output(h * activation(gate)), where h_t = a h_(t-1) + sqrt(1 - a^2) (input gate * x), and a is a gated decay."""

    counts_tokens = True

    def __init__(self, spec: spec.RGLRU, context: BuildContext) -> None:
        super().__init__()
        self.width = spec.width
        self.gate = Linear(context.d_model, spec.width)
        self.input = Linear(context.d_model, spec.width)
        self.convolution = CausalConvolution(spec.width, spec.kernel_size, bias=True)
        self.activation = activation(spec.activation)
        blocks = (spec.width // spec.heads,) * 2
        self.input_gate = BlockLinear(spec.heads, *blocks)
        self.decay_gate = BlockLinear(spec.heads, *blocks)
        self.rate = nn.Parameter(torch.empty(spec.width))
        self.output = Linear(spec.width, context.d_model)

    def initial(self, leaf: str) -> Distribution | None:
        """Decays around 0.96 where the gate is half open."""
        return Distribution(constant=-4.6) if leaf == "rate" else None

    @property
    def state(self) -> tuple[StateTensor, ...]:
        """The last inputs of the convolution, and all channels."""
        return self.convolution.state, StateTensor("recurrent", (self.width,), torch.float32)

    def sharding(self) -> Sharding:
        """By blocks of channels."""
        width, heads = self.width, self.input_gate.heads
        cuts = dict.fromkeys(("gate", "input"), COLUMNS)
        cuts |= dict.fromkeys(("convolution", "input_gate", "decay_gate", "rate"), HEADS)
        divided = {
            "width": width,
            "convolution.channels": width,
            "input_gate.heads": heads,
            "decay_gate.heads": heads,
        }
        return Sharding(
            cuts | {"activation": SHARED, "output": ROWS}, {"heads": heads}, counted(**divided), last="output"
        )

    def forward(self, x: Tensor, context: MixerContext, past: State | None) -> tuple[Tensor, State]:
        """x: B T and d_model, past: B D (W - 1) and B D -> B T and d_model, and the same state."""
        last_inputs, channels = (None, None) if past is None else past
        gate = self.activation(self.gate(x))  # B T D
        x, last_inputs = self.convolution(self.input(x), context, last_inputs)
        decay = (
            -SHARPNESS * torch.sigmoid(wide(self.decay_gate(x))) * F.softplus(wide(self.rate))
        )  # its logarithm
        first = (context.positions == 0)[..., None]  # there is nothing to keep
        share = torch.where(first, 1.0, (1 - torch.exp(2 * decay)).clamp(min=LEAST).sqrt())
        x = wide(x) * torch.sigmoid(wide(self.input_gate(x))) * share
        mixed, channels = functional.diagonal_recurrence(x, decay, channels, context.real)
        return self.output(mixed * wide(gate)), (last_inputs, channels)
