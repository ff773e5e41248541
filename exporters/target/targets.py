"""The deployment targets: one row each decides which operations a graph may use.

An emitter asks its target whether it takes an operation, and otherwise writes equivalent standard operations. A new
target is a row in ``TARGETS``, a new operation a row in ``OPERATIONS``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import torch

from exporters.target.providers import CPU, CUDA, TENSORRT, WEBGPU

FULL = frozenset({torch.float32})
HALF = frozenset({torch.float16, torch.bfloat16})
FULL_AND_FLOAT16 = frozenset({torch.float32, torch.float16})
FLOATS = FULL | HALF

CONTRIB = "com.microsoft"
"""The domain of ONNX Runtime's own operations."""


@dataclass(frozen=True)
class OnnxOperator:
    """An operation that not every target has: its domain ("" is standard ONNX), and the first version with it.

    ``standard`` is the first opset of standard ONNX that has an operation of another domain as well.
    """

    name: str
    since: int = 1
    domain: str = ""
    standard: int | None = None


OPERATIONS = {
    operation.name: operation
    for operation in (
        OnnxOperator("Gelu", since=20),
        OnnxOperator("MatMulInteger", since=10),
        OnnxOperator("DequantizeLinear", since=21),
        OnnxOperator("MatMulNBits", domain=CONTRIB),
        OnnxOperator("GatherBlockQuantized", domain=CONTRIB),
        OnnxOperator("GroupQueryAttention", domain=CONTRIB),
        OnnxOperator("FusedMatMul", domain=CONTRIB),
        OnnxOperator("BiasGelu", domain=CONTRIB),
        OnnxOperator("FastGelu", domain=CONTRIB),
        OnnxOperator("SkipLayerNormalization", domain=CONTRIB),
        OnnxOperator("SkipSimplifiedLayerNormalization", domain=CONTRIB),
        OnnxOperator("MultiHeadAttention", domain=CONTRIB),
        OnnxOperator("CausalConvWithState", domain=CONTRIB, standard=27),
        OnnxOperator("LinearAttention", domain=CONTRIB, standard=27),
        OnnxOperator("GatedRMSNorm", domain=CONTRIB),
        OnnxOperator("LinearAttentionGate", domain=CONTRIB),
        OnnxOperator("MoE", domain=CONTRIB),
        OnnxOperator("QMoE", domain=CONTRIB),
        OnnxOperator("Attention", since=23),
        OnnxOperator("RotaryEmbedding", since=23),
        OnnxOperator("RMSNormalization", since=23),
        OnnxOperator("SimplifiedLayerNormalization"),
        OnnxOperator("TensorScatter", since=24),
    )
}

Padding = Literal["either", "right", "none"]
"""The side on which rows may be padded; with "none", every row has as many tokens."""

Undivided = Literal["short block", "rows", "floats"]
"""A quantized matrix whose width no block size divides: its last block is shorter, its rows have one scale and 8 bits each, or it
stays float. Blocks of 16 are tried before the last two."""

IN_HALF_ALREADY = {"q4f16": "its int4 is float16 elsewhere already"}
"""The precision that targets with quantized products in float16 alone lack."""


@dataclass(frozen=True)
class Target:
    """A place where graphs run, with everything that is particular to it."""

    name: str
    guide: tuple[str, str]
    """The cells of its row in the guide: its operations, and a decoder's cache."""
    providers: tuple[str, ...]
    operations: Mapping[str, frozenset[torch.dtype]]
    padding: Padding = "either"
    """The side on which a decoder's graph takes padding.  With "right", the tokens of every row are together at the front of its
    cache, which operations with a shared buffer of keys and values need."""
    packs_tokens: bool = False
    """Whether an encoder's graph removes padding everywhere but in attention."""
    static_cache: bool = False
    """Whether a decoder's keys and values are in caches of fixed length, at the slots that position_ids give."""
    quantized_dtype: torch.dtype = torch.float32
    """The dtype of everything that a quantized export leaves unquantized, the inputs of its products included."""
    zero_points: bool = True
    """Whether blocks of weights may have zero points."""
    positive_scales: bool = False
    """Whether scales of 8-bit weights are positive; the codes of a block reach one step less far above 0 than below."""
    undivided: Undivided = "short block"
    """The form of quantized matrices whose width no block size divides."""
    block_products: frozenset[str] = frozenset()
    """The optional parts of MatMulNBits that its kernels take: ``accuracy_level``, which rounds inputs, and ``bias``."""
    attention_widths: range = range(1, 2**31)
    """The widths of heads for which its Attention has a kernel."""
    interleaved: frozenset[torch.dtype] = FLOATS
    """The dtypes in which its RotaryEmbedding rotates pairs of neighbours."""
    biases_group_queries: bool = False
    """Whether its GroupQueryAttention takes a bias that is added to the scores."""
    norms_in_attention: bool = False
    """Whether ONNX Runtime moves norms of queries and keys into its GroupQueryAttention, which then reads B T HK where a norm's
    vectors were reshaped from."""
    masks_keys: bool = True
    """Whether its MultiHeadAttention takes a mask of the keys; otherwise a bias masks them."""
    appends_nothing: bool = True
    """Whether its MultiHeadAttention takes a past without new keys, such as an encoder's after the first step."""
    cache_bits: frozenset[int] = frozenset()
    """The widths in bits of quantized caches, whose scales its attention reads."""
    window_slack: int | None = None
    """The slots beyond the window of a cache that holds it alone, which its attention uses to move keys seldom; None if its
    attention needs a full cache."""
    fuses_convolution_gates: bool = False
    """Whether its CausalConvWithState applies SiLU itself: one kernel less on a GPU. On the CPU that takes five times as long."""
    branches_on_padding: bool = False
    """Whether causal convolutions move padding out of the way in a branch that calls without padding skip. On a GPU, the condition
    would be copied to the host, and would rule out that the graph is captured."""
    static_shapes: bool = False
    """Whether no size in a graph may depend on data, so that mixtures compute every expert."""
    expert_parts: int = 1
    """The parts into which the hidden layers of MoE's experts are divided, which it takes as experts of their own. Its threads
    share experts by ranges of indices: part by part, no thread is left with all that a token chose."""
    weighs_experts: bool = True
    """Whether its QMoE multiplies experts by the weights that it is given. CUDA's takes the softmax of the scores alone (ONNX Runtime
    1.31: ``SoftmaxTopKKernel`` has no input for weights)."""
    mxfp4_experts: bool = False
    """Whether its QMoE reads experts of 4-bit floats, with an exponent for every 32 (MXFP4)."""
    sizes_on_device: bool = False
    """Whether a size that tensors are computed with is computed beside them, where the shapes of tensors are on the host: a copy
    would otherwise move it, and rule out that the graph is captured."""
    unfused_softmax: bool = False
    """Whether attention without a mask is written so that no engine fuses its softmax with its products, which OpenVINO does wrongly."""
    chunks_delta_rules: bool = True
    """Whether delta rules compute many tokens in chunks; elsewhere one token after another, with fewer computed sizes."""
    attention_beside_scans: bool = True
    """Whether its Attention has a kernel where a recurrence runs beside it in the same block."""
    profiles: str | None = None
    """The file of optimization profiles (:mod:`exporters.target.profiles`), for compilers that ask for the sizes of inputs."""
    opsets: Mapping[int, Mapping[str, frozenset[torch.dtype]]] = field(default_factory=dict)
    """The opsets that can be asked for, with the operations that each of them adds."""
    opset: int | None = None
    """The opset that was asked for; None for the lowest that a graph needs."""
    unsupported_precisions: Mapping[str, str] = field(default_factory=dict)
    """The precisions that it does not have, with the reasons."""
    coarse_sines: bool = False
    """Whether its sines and cosines are inexact, so that a graph computes them itself (:mod:`exporters.graph.emitters.sines`)."""
    whole_groups: bool = False
    """Whether groups of a convolution with more than 4 outputs must have whole vectors of 4: others are computed wrongly."""
    largest_tensor: int | None = None
    """The bytes of the largest weight that fits one of its buffers; None for no limit."""

    def in_opset(self, opset: int | None) -> Target:
        """The target with graphs of one of its opsets; None for the lowest that each graph needs."""
        if opset is None:
            return self
        return replace(self, opset=opset, operations={**self.operations, **self.opsets[opset]})

    def domain(self, operation: str) -> str:
        """The domain of an operation of ``OPERATIONS``: "" where standard ONNX has it in the opset that was asked for."""
        known = OPERATIONS[operation]
        if self.opset is None or known.standard is None or known.standard > self.opset:
            return known.domain
        return ""

    def takes(self, operation: str, dtype: torch.dtype) -> bool:
        """Whether a graph for this target may use an operation of ``OPERATIONS`` in a dtype."""
        return dtype in self.operations.get(operation, ())

    @property
    def quantizes_in_half(self) -> bool:
        """Whether quantized products read float16, so that weights are dequantized and no inputs are rounded."""
        return self.quantized_dtype == torch.float16

    @property
    def multiplies_integers(self) -> bool:
        """Whether int8 products multiply 8-bit integers."""
        return not self.quantizes_in_half and self.takes("MatMulInteger", torch.float32)


TARGETS = {
    target.name: target
    for target in (
        # --8<-- [start:portable]
        Target(
            "portable",
            guide=(
                "standard ONNX only; runs on every provider of ONNX Runtime",
                "grows from call to call; padding on either side",
            ),
            providers=(CPU,),
            operations={"Gelu": FLOATS, "MatMulInteger": FULL},
            undivided="rows",
            unfused_softmax=True,
            opsets={27: {"CausalConvWithState": FULL_AND_FLOAT16, "LinearAttention": FULL}},
        ),
        # --8<-- [end:portable]
        # --8<-- [start:cpu]
        Target(
            "cpu",
            guide=(
                "GroupQueryAttention with rotation and cache inside, MultiHeadAttention, one product for queries, keys and "
                "values, residuals with their norms as one operation, LinearAttention, CausalConvWithState; encoders compute real "
                "tokens only",
                "one buffer for past and present, of any length that the client chooses; padding on the right",
            ),
            providers=(CPU,),
            operations={
                "Gelu": FLOATS,
                "FusedMatMul": FULL,
                "SkipLayerNormalization": FULL,
                "SimplifiedLayerNormalization": FULL,
                "SkipSimplifiedLayerNormalization": FULL,
                "GroupQueryAttention": FULL_AND_FLOAT16,
                "MultiHeadAttention": FULL,
                "CausalConvWithState": FULL,
                "LinearAttention": FULL,
                "MoE": FULL_AND_FLOAT16,
                "QMoE": FULL_AND_FLOAT16,
                "MatMulInteger": FULL,
                "MatMulNBits": FULL_AND_FLOAT16,
                "GatherBlockQuantized": FULL_AND_FLOAT16,
            },
            padding="right",
            packs_tokens=True,
            block_products=frozenset({"accuracy_level", "bias"}),
            biases_group_queries=True,
            cache_bits=frozenset({8, 4}),
            window_slack=16,
            expert_parts=2,
            branches_on_padding=True,
        ),
        # --8<-- [end:cpu]
        Target(
            "cuda",
            guide=(
                "the same in half precision; biases with their activations as one operation",
                "as `cpu`",
            ),
            providers=(CUDA, CPU),
            operations={
                "Gelu": FLOATS,
                "GroupQueryAttention": HALF,
                "MultiHeadAttention": FLOATS,
                "CausalConvWithState": FULL_AND_FLOAT16,
                "LinearAttention": FULL,
                "GatedRMSNorm": FULL,
                "LinearAttentionGate": FULL,
                "MoE": FLOATS,
                "QMoE": frozenset({torch.float16}),
                "BiasGelu": FLOATS,
                "FastGelu": FLOATS,
                "SkipLayerNormalization": FLOATS,
                "SimplifiedLayerNormalization": FLOATS,
                "SkipSimplifiedLayerNormalization": FLOATS,
                "MatMulInteger": FULL,
                "MatMulNBits": HALF,
                "GatherBlockQuantized": HALF,
            },
            padding="right",
            packs_tokens=True,
            quantized_dtype=torch.float16,
            cache_bits=frozenset({8, 4}),
            window_slack=0,
            unsupported_precisions=IN_HALF_ALREADY,
            norms_in_attention=True,
            weighs_experts=False,
            mxfp4_experts=True,
            sizes_on_device=True,
            fuses_convolution_gates=True,
        ),
        Target(
            "tensorrt",
            guide=(
                "standard ONNX only, of opset 23 and 24: RotaryEmbedding, RMSNormalization, TensorScatter, and Attention in half "
                "precision (TensorRT 10.15 has them all)",
                "of fixed length, `--cache-length N` or the context length; padding on the right",
            ),
            providers=(TENSORRT, CUDA, CPU),
            operations={
                "Gelu": FLOATS,
                "Attention": HALF,
                "RotaryEmbedding": FLOATS,
                "RMSNormalization": FLOATS,
                "TensorScatter": FLOATS,
            },
            padding="right",
            static_cache=True,
            quantized_dtype=torch.float16,
            zero_points=False,
            unsupported_precisions=IN_HALF_ALREADY,
            positive_scales=True,
            undivided="floats",
            static_shapes=True,
            chunks_delta_rules=False,
            attention_beside_scans=False,
            profiles="tensorrt.json",
            attention_widths=range(9, 257),
            interleaved=HALF,
        ),
        # --8<-- [start:webgpu]
        Target(
            "webgpu",
            guide=(
                "GroupQueryAttention with rotation and cache inside, MultiHeadAttention, residuals with their norms and biases "
                "with their activations as one operation, LinearAttention, CausalConvWithState; products of weights in 4 and 8 "
                "bits",
                "as `cpu`",
            ),
            providers=(WEBGPU, CPU),
            operations={
                "Gelu": FULL_AND_FLOAT16,
                "GroupQueryAttention": FULL_AND_FLOAT16,
                "MultiHeadAttention": FULL_AND_FLOAT16,
                "CausalConvWithState": FULL_AND_FLOAT16,
                "LinearAttention": FULL_AND_FLOAT16,
                "QMoE": FULL_AND_FLOAT16,
                "BiasGelu": FULL_AND_FLOAT16,
                "FastGelu": FULL_AND_FLOAT16,
                "SkipLayerNormalization": FULL_AND_FLOAT16,
                "SimplifiedLayerNormalization": FULL_AND_FLOAT16,
                "SkipSimplifiedLayerNormalization": FULL_AND_FLOAT16,
                "MatMulNBits": FULL_AND_FLOAT16,
                "GatherBlockQuantized": FULL_AND_FLOAT16,
            },
            padding="right",
            block_products=frozenset({"accuracy_level", "bias"}),
            biases_group_queries=True,
            norms_in_attention=True,
            masks_keys=False,
            appends_nothing=False,
            unsupported_precisions={"bf16": "WebGPU has no bfloat16"},
            coarse_sines=True,
            whole_groups=True,
            largest_tensor=2**31 - 4,
        ),
        # --8<-- [end:webgpu]
    )
}
"""The targets by name.  A package adds one with ``TARGETS[target.name] = target``."""

BASE_OPSET = 18
"""The lowest opset written, from which on reductions take their axes as inputs."""

BFLOAT16_SINCE = dict.fromkeys(
    ("Conv", "Cos", "Elu", "HardSigmoid", "HardSwish", "Mish", "Selu", "Sin", "Softplus", "Softsign"), 22
)
"""The first opset in which operations take bfloat16, for operations that are otherwise written in lower opsets."""
