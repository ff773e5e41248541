"""The keywords of ``zoo.export``, for editors and type checkers, and the names that its help lists.

Written by ``make digests`` from :class:`specs.files.export_options.OptionTable` and the tables of targets and layouts.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, TypedDict

TARGETS = ("portable", "cpu", "cuda", "tensorrt", "webgpu")
LAYOUTS = ("onnx", "genai", "optimum", "transformers-js")
"""The names of zoo's own targets and layouts: their tables need torch."""


class ExportKeywords(TypedDict, total=False):
    """The options of an export."""

    weights: str | os.PathLike[str]
    """Weights: random, none (graph only), a file, directory or hub repository. Default: SPEC's own, or random."""
    adapters: str | Sequence[str]
    """LoRA adapter of PEFT that clients can switch on, as a file beside the graph (NAME.onnx_adapter); repeatable."""
    seed: int
    """Seed for random weights."""
    precision: Literal["fp32", "fp16", "bf16", "int8", "int4", "q4f16"]
    """Precision of the stored weights; int8 and int4 apply to matrices only."""
    target: str
    """Runtime platform of the graphs."""
    layout: str
    """Client that will load the directory."""
    logits: Literal["all", "last"]
    """Positions to score: all, or only the last non-padding token of each row (enough for generation)."""
    outputs: str | Sequence[str]
    """Additional outputs: hidden:9,-2 (hidden states, numbered as in transformers), attention:all or cross:0 (attention
    weights), or last_hidden_state (the input of the head); repeatable. decoder.hidden:9 names one of several stacks."""
    via: Literal["fx", "torch"]
    """Tracer: fx, or torch (the PyTorch exporter) for components that fx cannot trace."""
    opset: int | None
    """Opset of all graphs; 27 has LinearAttention and CausalConvWithState (target portable only). Default: the lowest
    that each graph needs."""
    block_size: Literal[32, 64, 128]
    """Quantization block size, in values per scale (int4 and q4f16)."""
    asymmetric: bool
    """Store a zero point per quantization block (int4 and q4f16)."""
    head_precision: Literal["int8", "int4"]
    """Precision of token tables and language-model heads (int4 and q4f16)."""
    rounding: Literal["gptq", "nearest"] | None
    """Rounding method (int4 and q4f16); gptq is more accurate and needs representative inputs. Default: gptq for real
    weights."""
    budget: str | None
    """Maximum size of the data file (105MB, 110000000) or mean bits per weight (4.8bits); sensitive layers get 8 or 16
    bits (int4 and q4f16)."""
    activations: Literal["static", "dynamic"] | None
    """Scales of int8 activations: static from calibration (int8 encoders on portable and cpu), or dynamic per input.
    Default: static for real weights."""
    cache_length: int | None
    """Capacity of a fixed-size KV cache, in tokens (target tensorrt only). Default: the context length."""
    cache_precision: Literal["float", "int8", "int4"]
    """Precision of the KV cache; int8 and int4 use calibrated scales (target cpu or cuda only)."""
    window_cache: bool
    """Cache only the window in layers with one (target cpu or cuda; layout onnx or genai); all rows of a batch then
    have the same length."""
    cuda_graph: bool
    """Let the client capture each step as a CUDA graph (target cuda, layout genai)."""
    verify: bool
    """Compare ONNX Runtime with PyTorch, and rounded weights with the float model. The weights are the same without
    it."""
    engines: str | Sequence[str]
    """Verify the files on this engine as well; repeatable (zoo engines lists them)."""
    calibrate: str | os.PathLike[str] | None
    """Representative inputs for calibration and quality: UTF-8 text, token ids (.npy), named arrays (.npz), an image or
    audio (.wav), or a directory of them, where a text (.txt) of the same name may belong to an image. Default: built-in
    prose, or generated text; none for images and audio."""
    max_kl: float | None
    """Maximum KL divergence from the float model, in nats, for models with logits. Default: fp16 0.001, bf16 0.01, int8
    0.05, int4 0.5, q4f16 0.5; an int8 cache adds 0.01, an int4 cache 0.3."""
    min_cosine: float | None
    """Minimum mean cosine to the float model, for models that return vectors. Default: fp16 0.9999, bf16 0.999, int8
    0.98, int4 0.95, q4f16 0.95; minus 0.001 with an int8 cache, 0.02 with int4."""
    provider: str | None
    """Execution provider of ONNX Runtime to run on: cpu, cuda, or any other that is installed. Default: the first of
    the export's target that this machine has."""
