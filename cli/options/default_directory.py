"""Default output directories, named after the model and the options that change the files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exporters.steps.options import Options

BUILD = Path("build")

_WORDS: dict[str, Callable[[Any], str]] = {
    "precision": str,
    "target": str,
    "layout": str,
    "logits": lambda which: f"{which}-logits",
    "block_size": lambda size: f"block-{size}",
    "asymmetric": lambda asymmetric: "asymmetric",
    "head_precision": lambda precision: f"head-{precision}",
    "rounding": lambda rounding: rounding,
    "activations": lambda kind: f"{kind}-activations",
    "budget": lambda size: f"budget-{size}",
    "cache_length": lambda length: f"cache-{length}",
    "cache_precision": lambda precision: f"{precision}-cache",
    "cuda_graph": lambda captured: "cuda-graph",
    "via": lambda tracer: f"via-{tracer}",
    "opset": lambda opset: f"opset-{opset}",
}
"""The word for each option with a value other than its default, in order."""


def export_directory(name: str, options: Options) -> Path:
    """Return build/gpt2 or build/gpt2-int8-cpu, so that exports with other options do not replace each other."""
    defaults = type(options)()
    words = [
        word(getattr(options, option))
        for option, word in _WORDS.items()
        if getattr(options, option) != getattr(defaults, option)
    ]
    graph_alone = ["graph"] if options.weights == "none" else []
    return BUILD / "-".join([name, *words, *graph_alone])


def checkpoint_directory(name: str, dtype: str, family: str | None) -> Path:
    """Return build/gpt2-checkpoint or build/gpt2-checkpoint-fp16."""
    words = [*([] if dtype == "fp32" else [dtype]), *([family] if family else [])]
    return BUILD / "-".join([name, "checkpoint", *words])
