"""The operation of the module that zoo does not have: torch.square."""

import torch

from zoo.ops import register_operation
from zoo.ops.elementwise import same
from zoo.ops.flops import per_element
from zoo.ops.saved import saves_tensors
from zoo.ops.tokens import separate

register_operation(
    torch.square,
    "square",
    shape=same,  # of the result: that of the argument
    flops=per_element(),  # one per element of the result
    saved=saves_tensors,  # autograd saves the argument
    mixing=separate,  # tokens of a sequence stay apart
    emitter="zoo_squared_relu.emitter",
)
