"""What ``optimum.onnxruntime`` loads: encoders, decoders and encoder-decoders of the reference implementation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from exporters.layouts.layout import Data, Deployment, Layout, unfit_decoder, unfit_precision
from zoo.checkpoints.carried import GENERATION, stated_in
from zoo.configs.config import CONFIG
from zoo.tracing.tasks import tasks_with_first_step

_GROUPED = frozenset(
    [
        "deepseek_v3",
        "falcon",
        "gemma",
        "gemma3_text",
        "gpt_oss",
        "llama",
        "mistral",
        "qwen2",
        "qwen3",
        "qwen3_moe",
        "smollm3",
        "stablelm",
    ]
)
"""The families of which it reads how many key-value heads there are; of others it takes all heads to have their own."""

_OWN_WIDTH = frozenset({"deepseek_v3", "gemma", "gemma3_text", "gpt_oss"})
"""The families of which it reads the width of a head; of others it takes it to be d_model / heads."""

TOKENIZER = "tokenizer_config.json"
_TOKENIZERS = {"TokenizersBackend": "PreTrainedTokenizerFast"}
"""What version 5 of transformers writes, and what it and version 4 read."""


def _misfit(deployment: Deployment) -> str | None:
    fault = unfit_decoder(deployment) or unfit_precision(deployment) or deployment.unconfigured
    if fault or deployment.spec.architecture != "decoder":
        return fault
    family, model = deployment.config["model_type"], deployment.model
    for block in model.decoder.blocks:
        wrong = _wrong_cache(block.attention, family, deployment.spec.d_model)
        if wrong:
            return wrong
    return None


def _wrong_cache(attention: Any, family: str, d_model: int) -> str | None:
    """How the first, empty cache that it makes for a decoder is not what an attention takes."""
    heads, *widths = attention.cached
    assumed_heads = heads if family in _GROUPED else attention.heads
    assumed_widths = widths if family in _OWN_WIDTH else [d_model // attention.heads] * 2
    if (assumed_heads, assumed_widths) == (heads, widths):
        return None
    return (
        f"it takes the caches of {family} to have {assumed_heads} heads of width {assumed_widths[0]}, "
        f"and they have {heads} of width {widths[0]}"
    )


def _settings(deployment: Deployment, shared: bool) -> dict[str, Data]:
    generates = deployment.spec.head.kind == "language_modeling"
    generation = {GENERATION: deployment.generation} if generates and deployment.generation else {}
    return {CONFIG: deployment.config, **deployment.modules, **generation, **_tokenizer(deployment.origin)}


def _tokenizer(origin: Path) -> dict[str, Data]:
    """The tokenizer's settings where they name a class that the client's version of the reference knows by another."""
    settings = stated_in(origin / TOKENIZER)
    renamed = _TOKENIZERS.get(settings.get("tokenizer_class", ""))
    return {TOKENIZER: {**settings, "tokenizer_class": renamed}} if renamed else {}


OPTIMUM = Layout(
    "optimum",
    client="optimum-onnx",
    tasks=tasks_with_first_step,
    misfit=_misfit,
    settings=_settings,
    data="model.onnx_data",
    padding="either",
)
