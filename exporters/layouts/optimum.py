"""The layout of ``optimum.onnxruntime``, which loads the reference implementation's encoders, dual encoders, decoders and
encoder-decoders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from exporters.layouts.example_input import example_ids, example_sizes, lacks_start_token
from exporters.layouts.layout import (
    Data,
    Deployment,
    Layout,
    generation_settings,
    named,
    unfit_decoder,
    unfit_hidden_states,
    unfit_precision,
    unfit_spans,
)
from exporters.layouts.purpose import purpose_of
from specs.kinds.embedding import EmbeddingKind
from specs.model.model import Model
from zoo.checkpoints.carried import stated_in
from zoo.families.common.config import CONFIG
from zoo.record.manifest import Manifest
from zoo.record.records import GraphRecord
from zoo.record.usage import Usage
from zoo.tracing.dual_encoder_tasks import whole_task
from zoo.tracing.task import Task
from zoo.tracing.tasks import tasks_with_first_step
from zoo.weights.modules import body_directory

_GROUPED = frozenset(
    [
        "deepseek_v3", "falcon", "gemma", "gemma3_text", "gpt_oss", "llama", "mistral", "qwen2", "qwen3",
        "qwen3_moe", "smollm3", "stablelm",
    ]
)  # fmt: skip
"""The families whose key/value head count it reads; for others it assumes one per query head."""

_OWN_WIDTH = frozenset({"deepseek_v3", "gemma", "gemma3_text", "gpt_oss"})
"""The families whose head width it reads; for others it assumes d_model / heads."""

TOKENIZER = "tokenizer_config.json"
_TOKENIZERS = {"TokenizersBackend": "PreTrainedTokenizerFast"}
"""Class names that transformers 5 writes, and equivalents that transformers 4 can read."""
_LISTED, _LISTED_IN_4 = "extra_special_tokens", "additional_special_tokens"
"""The field of further special tokens in transformers 5 and in 4. Version 5 reads both names; version 4 fails on a list under
the first."""


def _tasks(model: Any, spec: Model, last_only: bool) -> list[Task]:
    """The graphs of a model; for a dual encoder only the joint graph, because the client loads a single file."""
    if spec.architecture == "dual-encoder":
        return [whole_task(spec, "model")]
    return tasks_with_first_step(model, spec, last_only)


def _misfit(deployment: Deployment) -> str | None:
    if deployment.spec.architecture == "vision-language":
        return "it has no class for decoders that read images"
    if deployment.spec.head.kind == "detection":
        return "it has no class for models that detect what texts name"
    fault = (
        unfit_decoder(deployment)
        or unfit_hidden_states(deployment)
        or unfit_spans(deployment)
        or unfit_precision(deployment)
        or deployment.unconfigured
    )
    if fault or deployment.spec.architecture != "decoder":
        return fault
    family, model = deployment.config["model_type"], deployment.model
    for block in model.decoder.blocks:
        if block.mixer is not None or block.attention is None or not block.state:
            return f"it expects a key and a value of every layer, and one has {named(block.state)}"
        wrong = _wrong_cache(block.attention, family, deployment.spec.d_model)
        if wrong:
            return wrong
    return None


def _wrong_cache(attention: Any, family: str, d_model: int) -> str | None:
    """Return the reason why the client's empty cache for the first step does not fit an attention; None if it does."""
    heads, _, _ = attention.state[0].dims
    widths = [tensor.dims[-1] for tensor in attention.state]
    assumed_heads = heads if family in _GROUPED else attention.heads
    assumed_widths = widths if family in _OWN_WIDTH else [d_model // attention.heads] * 2
    if (assumed_heads, assumed_widths) == (heads, widths):
        return None
    return (
        f"it expects {family} caches with {assumed_heads} heads of width {assumed_widths[0]}, "
        f"and the model has {heads} of width {widths[0]}"
    )


def _settings(deployment: Deployment, shared: bool) -> dict[str, Data]:
    generation = generation_settings(deployment)
    return {CONFIG: deployment.config, **deployment.modules, **generation, **_tokenizer(deployment.origin)}


def _tokenizer(origin: Path) -> dict[str, Data]:
    """Return the tokenizer's settings for the client's version of transformers, if they differ."""
    settings = stated_in(body_directory(origin) / TOKENIZER)
    changed = dict(settings)
    if renamed := _TOKENIZERS.get(settings.get("tokenizer_class", "")):
        changed["tokenizer_class"] = renamed
    if isinstance(settings.get(_LISTED), list):
        changed[_LISTED_IN_4] = changed.pop(_LISTED)
    return {} if changed == settings else {TOKENIZER: changed}


def _usage(spec: Model, manifest: Manifest) -> Usage:
    graph = next(iter(manifest.graphs.values()))
    embedding = spec.embedding_of(spec.first_stack)
    imports, inputs = ["import torch"], []
    if not embedding.takes_tokens:
        shape = ", ".join(map(str, (1, *example_sizes(graph.inputs[embedding.input_name]))))
        inputs = [f'inputs = {{"{embedding.input_name}": torch.zeros({shape})}}  # from the preprocessor']
    elif TOKENIZER in manifest.files:
        imports = ["from transformers import AutoTokenizer"]
        inputs = [
            'tokenizer = AutoTokenizer.from_pretrained(".")',
            'inputs = tokenizer("Once upon a time", return_tensors="pt")',
        ]
    else:
        inputs = [
            f"ids = torch.tensor([[{example_ids(spec, graph)}]])  # from the model's tokenizer",
            'inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}',
        ]
    purpose = purpose_of(spec).suffix
    if embedding.token_inputs:
        purpose, imports = "CustomTasks", list(dict.fromkeys([*imports, "import torch"]))
        inputs += _beside(embedding, graph)
    if spec.architecture == "dual-encoder" and spec.image is not None:
        purpose = "ZeroShotImageClassification"
        image = spec.embedding_of(spec.image)
        shape = ", ".join(map(str, (1, *image.input_shape(None))))
        imports = list(dict.fromkeys([*imports, "import torch"]))
        inputs.append(f'inputs["{image.input_name}"] = torch.zeros({shape})  # from the preprocessor')
    generates = spec.head.kind == "language_modeling"
    start = ", decoder_start_token_id=0" if lacks_start_token(spec, manifest) else ""
    run = f"model.generate(**inputs, max_new_tokens=20{start})" if generates else "model(**inputs)"
    name = f"ORTModelFor{purpose}"
    lines = [
        f"from optimum.onnxruntime import {name}",
        *imports,
        "",
        f'model = {name}.from_pretrained(".")',
        *inputs,
        f"print({run})",
    ]
    return Usage("python", "\n".join(lines), ["optimum-onnx", "onnxruntime"])


def _beside(embedding: EmbeddingKind, graph: GraphRecord) -> list[str]:
    """The lines that add the inputs beside tokens, of which the classes of tasks know none."""
    taken = {
        "token_type_ids": ", dtype=torch.int64",
        **{
            beside.name: "".join(f", {size}" for size in beside.sizes)
            + ("" if beside.is_real else ", dtype=torch.int64")
            for beside in embedding.token_inputs
        },
    }
    return [
        f'inputs.setdefault("{name}", torch.zeros(*inputs["input_ids"].shape{rest}))'
        for name, rest in taken.items()
        if name in graph.inputs
    ]


LAYOUT = Layout(
    "optimum",
    client="optimum-onnx",
    guide=(
        "`optimum.onnxruntime` (optimum-onnx 0.1): `ORTModelForFeatureExtraction`, `ForCausalLM`, `ForSeq2SeqLM`, "
        "`ForZeroShotImageClassification`, ...",
        "`model.onnx`; or `encoder_model.onnx`, `decoder_model.onnx` for the first step and `decoder_with_past_model.onnx` "
        "for the others",
        "`config.json`, `generation_config.json`, tokenizer",
    ),
    tasks=_tasks,
    misfit=_misfit,
    settings=_settings,
    usage=_usage,
    data="model.onnx_data",
    padding="either",
)
