"""What each deployment target runs: one table decides which operation a graph may use.

An emitter asks its target whether it takes an operation; where it does not, the emitter writes the standard
operations that come to the same.  A new target is a row in ``TARGETS``, a new operation a row in ``OPERATIONS``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import torch

FULL = frozenset({torch.float32})
HALF = frozenset({torch.float16, torch.bfloat16})
FULL_AND_FLOAT16 = frozenset({torch.float32, torch.float16})
FLOATS = FULL | HALF

CONTRIB = "com.microsoft"
"""The domain of ONNX Runtime's own operations."""


QUANTIZED_CACHE = "GroupQueryAttention with a quantized cache"
"""ONNX Runtime 1.27 takes float32 queries there, and 1.29 float16, too."""


@dataclass(frozen=True)
class Operation:
    """An operation that not every target has: its domain ("" is standard ONNX), and the first version with it.

    ``runtime`` is the first ONNX Runtime whose kernels do what graphs here need of them.
    """

    name: str
    since: int = 1
    domain: str = ""
    runtime: str = "1.14"


OPERATIONS = {
    operation.name: operation
    for operation in (
        Operation("Gelu", since=20, runtime="1.17"),
        Operation("MatMulInteger", since=10),
        Operation("DequantizeLinear", since=21, runtime="1.20"),
        Operation("MatMulNBits", domain=CONTRIB, runtime="1.22"),
        Operation("GatherBlockQuantized", domain=CONTRIB, runtime="1.22"),
        Operation("GroupQueryAttention", domain=CONTRIB, runtime="1.23"),
        Operation(QUANTIZED_CACHE, domain=CONTRIB, runtime="1.29"),
        Operation("FusedMatMul", domain=CONTRIB),
        Operation("BiasGelu", domain=CONTRIB),
        Operation("FastGelu", domain=CONTRIB),
        Operation("SkipLayerNormalization", domain=CONTRIB),
        Operation("SkipSimplifiedLayerNormalization", domain=CONTRIB, runtime="1.16"),
        Operation("MultiHeadAttention", domain=CONTRIB, runtime="1.17"),
        Operation("Attention", since=23, runtime="1.28"),
        Operation("RotaryEmbedding", since=23, runtime="1.23"),
        Operation("RMSNormalization", since=23, runtime="1.23"),
        Operation("TensorScatter", since=24, runtime="1.25"),
    )
}

Padding = Literal["either", "right"]


@dataclass(frozen=True)
class Target:
    """A place where graphs run: its providers in order of preference, and the operations it takes, each in which dtypes.

    ``padding`` is the side on which a decoder's graph takes padding: with "right", the tokens of every row stand
    together at the front of its cache, which is what operations with a shared buffer of keys and values want.
    ``packs_tokens``: an encoder's graph takes padding out of everything but attention.  ``static_cache``: a decoder's keys
    and values lie in caches of fixed length, of which tokens get the places that their position_ids say.  ``zero_points``:
    blocks of weights may have zero points of their own.  ``biases_group_queries``: its GroupQueryAttention takes a bias
    that is added to the scores.  ``cache_bits``: it caches keys and values in so many bits, with scales of its own.
    """

    name: str
    summary: str
    providers: tuple[str, ...]
    operations: Mapping[str, frozenset[torch.dtype]]
    padding: Padding = "either"
    packs_tokens: bool = False
    static_cache: bool = False
    zero_points: bool = True
    biases_group_queries: bool = False
    cache_bits: frozenset[int] = frozenset()

    def takes(self, operation: str, dtype: torch.dtype) -> bool:
        """Whether a graph for this target may use an operation of ``OPERATIONS`` in a dtype."""
        return dtype in self.operations.get(operation, ())


TARGETS = {
    target.name: target
    for target in (
        Target(
            "portable",
            "standard ONNX operations only; runs on every provider of ONNX Runtime",
            providers=("CPUExecutionProvider",),
            operations={"Gelu": FLOATS, "MatMulInteger": FULL},
        ),
        Target(
            "cpu",
            "ONNX Runtime's fused operations for processors",
            providers=("CPUExecutionProvider",),
            operations={
                "Gelu": FLOATS,
                "FusedMatMul": FULL,
                "GroupQueryAttention": FULL_AND_FLOAT16,
                "MultiHeadAttention": FULL,
                "MatMulInteger": FULL,
                "MatMulNBits": FULL_AND_FLOAT16,
                "GatherBlockQuantized": FULL_AND_FLOAT16,
            },
            padding="right",
            packs_tokens=True,
            biases_group_queries=True,
            cache_bits=frozenset({8, 4}),
        ),
        Target(
            "cuda",
            "ONNX Runtime's fused operations for NVIDIA GPUs",
            providers=("CUDAExecutionProvider", "CPUExecutionProvider"),
            operations={
                "Gelu": FLOATS,
                "GroupQueryAttention": HALF,
                "MultiHeadAttention": FLOATS,
                "BiasGelu": FLOATS,
                "FastGelu": FLOATS,
                "SkipLayerNormalization": FLOATS,
                "SkipSimplifiedLayerNormalization": FLOATS,
                "MatMulInteger": FULL,
                "MatMulNBits": HALF,
                "GatherBlockQuantized": HALF,
            },
            padding="right",
            cache_bits=frozenset({8, 4}),
        ),
        Target(
            "tensorrt",
            "standard operations of opset 23 and 24, and caches of fixed length, for TensorRT 10.15 or later",
            providers=("TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"),
            operations={
                "Gelu": FLOATS,
                "Attention": FLOATS,
                "RotaryEmbedding": FLOATS,
                "RMSNormalization": FLOATS,
                "TensorScatter": FLOATS,
            },
            padding="right",
            static_cache=True,
            zero_points=False,
        ),
    )
}

BASE_OPSET = 18
"""The lowest opset written: the reductions take their axes as inputs from here on."""

BFLOAT16_SINCE = dict.fromkeys(
    ("Conv", "Cos", "Elu", "HardSigmoid", "HardSwish", "Mish", "Selu", "Sin", "Softplus", "Softsign"), 22
)
"""The first opset in which operations that are written in lower ones too take bfloat16."""

MINIMUM_RUNTIME = {18: "1.14", 20: "1.17", 21: "1.18", 22: "1.20", 23: "1.23", 24: "1.24"}
"""The first ONNX Runtime that runs each opset in use."""


def minimum_runtime(opset: int, used: Iterable[str]) -> str:
    """The first ONNX Runtime that runs a graph of this opset with these operations."""
    known = [OPERATIONS[name].runtime for name in used if name in OPERATIONS]
    return max([MINIMUM_RUNTIME[opset], *known], key=lambda version: [*map(int, version.split("."))])
