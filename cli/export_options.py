"""The options of the commands that export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def complete_target(incomplete: str) -> list[str]:
    """Targets that begin with what is typed so far."""
    from exporters.targets import TARGETS

    return [name for name in TARGETS if name.startswith(incomplete)]


def complete_layout(incomplete: str) -> list[str]:
    """Layouts that begin with what is typed so far."""
    from exporters.layouts import LAYOUTS

    return [name for name in LAYOUTS if name.startswith(incomplete)]


Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        help="Output directory. Files of an earlier export there are replaced, yours are kept.  "
        "[default: build/NAME, and the options that shape the files, such as build/NAME-int8-cpu]",
        show_default=False,
    ),
]
Weights = Annotated[
    str,
    typer.Option(
        metavar="random|none|PATH|ORG/NAME",
        help="Random weights, none (the graph alone), a file (.safetensors, .bin, .gguf), a directory that has one, "
        "or a repository of the Hugging Face hub.",
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of the random weights.")]
TargetName = Annotated[
    str,
    typer.Option(
        "--target", metavar="NAME", help="Where the graph is to run.", autocompletion=complete_target
    ),
]
Logits = Annotated[
    str,
    typer.Option(
        metavar="all|last",
        help="Scores of every token, or of the last real token of each row alone, as generation needs them.",
    ),
]
CacheLength = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="How many tokens a cache that does not grow has room for (--target tensorrt).  "
        "[default: the context length]",
        show_default=False,
    ),
]
CachePrecision = Annotated[
    str,
    typer.Option(
        "--cache-precision",
        metavar="float|int8|int4",
        help="How a decoder caches keys and values: as floats, or as 8-bit or 4-bit codes with calibrated scales "
        "(--target cpu or cuda).",
    ),
]
PrecisionName = Annotated[
    str,
    typer.Option(
        "--precision",
        metavar="fp32|fp16|bf16|int8|int4",
        help="How weights are stored: in halves, norms and the stream between layers still work in float32; in 8 and 4 "
        "bits, matrices alone.",
    ),
]
BlockSize = Annotated[
    int, typer.Option(metavar="32|64|128", help="Of int4: how many values of a row share a scale.")
]
Asymmetric = Annotated[
    bool, typer.Option("--asymmetric", help="Of int4: every block has a zero point of its own, too.")
]
HeadPrecision = Annotated[
    str,
    typer.Option(metavar="int8|int4", help="Of int4: how embeddings of tokens and their heads are stored."),
]
Rounding = Annotated[
    str | None,
    typer.Option(
        metavar="gptq|nearest",
        help="Of int4: gptq rounds each layer for the inputs that it sees, which loses far less and takes a pass over "
        "representative inputs.  [default: gptq for real weights]",
        show_default=False,
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="SIZE",
        help="Largest data file (105MB, 110000000) or mean bits per quantized weight (4.8bits) of an int4 export; layers "
        "that lose most in 4 bits get 8 or 16.",
        show_default=False,
    ),
]
Activations = Annotated[
    str | None,
    typer.Option(
        metavar="static|dynamic",
        help="Scales of the inputs of 8-bit products (int8 encoders on portable and cpu): static scales come from "
        "calibration and lose far less, dynamic ones from each input.  [default: static for real weights]",
        show_default=False,
    ),
]
Verify = Annotated[
    bool,
    typer.Option(
        "--verify/--no-verify",
        help="Compare the files with the PyTorch model in ONNX Runtime, and judge what rounding changes.",
    ),
]
Via = Annotated[
    str,
    typer.Option(
        metavar="fx|torch",
        help="fx traces the model; torch uses PyTorch's exporter, for components that cannot be traced.",
    ),
]
Calibrate = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Inputs that the model is made for: UTF-8 text, token ids (.npy), arrays by input name (.npz), or audio (.wav, "
        "or a directory of them). Real weights that are rounded are judged on a part of it; the rest calibrates int4, and "
        "int8 of encoders.  [default: a corpus of prose, or text that the model writes; none for images and audio]",
        show_default=False,
    ),
]
MaxKl = Annotated[
    float | None,
    typer.Option(
        "--max-kl",
        metavar="NATS",
        help="Fail above this KL divergence from the float model, for models that score tokens or labels.  "
        "[default: fp16 0.001, bf16 0.01, int8 0.05, int4 0.5; an int8 cache adds 0.01, an int4 cache 0.3]",
        show_default=False,
    ),
]
MinCosine = Annotated[
    float | None,
    typer.Option(
        "--min-cosine",
        metavar="C",
        help="Fail below this mean cosine to the float model, for models that give vectors.  "
        "[default: fp16 0.9999, bf16 0.999, int8 0.98, int4 0.95; an int8 cache takes 0.001 off, an int4 cache 0.02]",
        show_default=False,
    ),
]
LayoutName = Annotated[
    str,
    typer.Option(
        "--layout",
        metavar="onnx|optimum|genai|transformers-js",
        help="The client that is to load the directory as it is.",
        autocompletion=complete_layout,
    ),
]
