"""Options of `zoo export`, shared with `zoo build`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def complete_target(incomplete: str) -> list[str]:
    """Complete the names of targets."""
    from exporters.target.targets import TARGETS

    return [name for name in TARGETS if name.startswith(incomplete)]


def complete_layout(incomplete: str) -> list[str]:
    """Complete the names of layouts."""
    from exporters.layouts import LAYOUTS

    return [name for name in LAYOUTS if name.startswith(incomplete)]


def complete_engine(incomplete: str) -> list[str]:
    """Complete the names of engines."""
    from exporters.verification.engines.find import engines_here

    return [engine.name for engine in engines_here() if engine.name.startswith(incomplete)]


Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        help="Output directory; replaces the files of an earlier export there and no others.  "
        "[default: build/NAME with options that change the files, such as build/NAME-int8-cpu]",
        show_default=False,
    ),
]
Weights = Annotated[
    str,
    typer.Option(
        metavar="random|none|PATH|ORG/NAME",
        help="Source of the weights: random, none (graph only), a file (.safetensors, .bin, .gguf), its directory, or a "
        "Hugging Face repository.",
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed for random weights.")]
TargetName = Annotated[
    str,
    typer.Option(
        "--target",
        metavar="NAME",
        help="Runtime platform: portable, cpu, cuda, tensorrt or webgpu, or that of a package.",
        autocompletion=complete_target,
    ),
]
Logits = Annotated[
    str,
    typer.Option(
        metavar="all|last",
        help="Positions to score: all, or only the last non-padding token of each row (enough for generation).",
    ),
]
CacheLength = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Capacity of a fixed-size KV cache, in tokens (--target tensorrt only).  [default: the context length]",
        show_default=False,
    ),
]
CachePrecision = Annotated[
    str,
    typer.Option(
        "--cache-precision",
        metavar="float|int8|int4",
        help="Precision of the KV cache; int8 and int4 use calibrated scales (--target cpu or cuda only).",
    ),
]
PrecisionName = Annotated[
    str,
    typer.Option(
        "--precision",
        metavar="fp32|fp16|bf16|int8|int4|q4f16",
        help="Precision of the stored weights; int8 and int4 apply to matrices only.",
    ),
]
BlockSize = Annotated[
    int,
    typer.Option(metavar="32|64|128", help="Quantization block size, in values per scale (int4 and q4f16)."),
]
Asymmetric = Annotated[
    bool, typer.Option("--asymmetric", help="Store a zero point per quantization block (int4 and q4f16).")
]
HeadPrecision = Annotated[
    str,
    typer.Option(
        metavar="int8|int4", help="Precision of token tables and language-model heads (int4 and q4f16)."
    ),
]
Rounding = Annotated[
    str | None,
    typer.Option(
        metavar="gptq|nearest",
        help="Rounding method (int4 and q4f16); gptq is more accurate and needs representative inputs.  "
        "[default: gptq for real weights]",
        show_default=False,
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="SIZE",
        help="Maximum size of the data file (105MB, 110000000) or mean bits per weight (4.8bits); sensitive layers get 8 "
        "or 16 bits (int4 and q4f16).",
        show_default=False,
    ),
]
Activations = Annotated[
    str | None,
    typer.Option(
        metavar="static|dynamic",
        help="Scales of int8 activations: static from calibration (int8 encoders on portable and cpu), or dynamic per "
        "input.  [default: static for real weights]",
        show_default=False,
    ),
]
Verify = Annotated[
    bool,
    typer.Option(
        "--verify/--no-verify",
        help="Compare ONNX Runtime with PyTorch, and rounded weights with the float model.",
    ),
]
Via = Annotated[
    str,
    typer.Option(
        metavar="fx|torch",
        help="Tracer: fx, or torch (the PyTorch exporter) for components that fx cannot trace.",
    ),
]
Opset = Annotated[
    int | None,
    typer.Option(
        metavar="27",
        help="Opset of all graphs; 27 has LinearAttention and CausalConvWithState (--target portable only).  "
        "[default: the lowest that each graph needs]",
        show_default=False,
    ),
]
Calibrate = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Representative inputs for calibration and quality: UTF-8 text, token ids (.npy), named arrays (.npz), an image "
        "or audio (.wav), or a directory of them, where a text (.txt) of the same name may belong to an image.  [default: built-in prose, or generated text; none for images and audio]",
        show_default=False,
    ),
]
MaxKl = Annotated[
    float | None,
    typer.Option(
        "--max-kl",
        metavar="NATS",
        help="Maximum KL divergence from the float model, in nats, for models with logits.  "
        "[default: fp16 0.001, bf16 0.01, int8 0.05, int4 0.5, q4f16 0.5; an int8 cache adds 0.01, an int4 cache 0.3]",
        show_default=False,
    ),
]
MinCosine = Annotated[
    float | None,
    typer.Option(
        "--min-cosine",
        metavar="C",
        help="Minimum mean cosine to the float model, for models that return vectors.  "
        "[default: fp16 0.9999, bf16 0.999, int8 0.98, int4 0.95, q4f16 0.95; minus 0.001 with an int8 cache, 0.02 with int4]",
        show_default=False,
    ),
]
LayoutName = Annotated[
    str,
    typer.Option(
        "--layout",
        metavar="NAME",
        help="Client that will load the directory: onnx, optimum, genai or transformers-js, or that of a package.",
        autocompletion=complete_layout,
    ),
]
CudaGraph = Annotated[
    bool,
    typer.Option(
        "--cuda-graph",
        help="Let the client capture each step as a CUDA graph (target cuda, layout genai).",
        show_default=False,
    ),
]
Engines = Annotated[
    list[str] | None,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="Prove the files on this engine as well; repeatable (zoo engines lists them).",
        autocompletion=complete_engine,
        show_default=False,
    ),
]
