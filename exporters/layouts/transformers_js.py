"""The layout of transformers.js, in Node and in browsers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from exporters.layouts.ctc_tokenizer import collapsing_tokenizer
from exporters.layouts.example_input import TOKENIZER as TOKENS
from exporters.layouts.example_input import (
    example_grid,
    example_ids,
    example_sizes,
    lacks_start_token,
)
from exporters.layouts.layout import (
    Data,
    Deployment,
    Layout,
    named,
    tokenizer_settings,
    unfit_decoder,
    unfit_hidden_states,
    unfit_precision,
    unfit_spans,
)
from exporters.layouts.optimum import LAYOUT as OPTIMUM
from exporters.layouts.optimum import TOKENIZER
from exporters.layouts.purpose import purpose_of
from specs.kinds.connector import ConnectorKind, LinearConnector
from specs.kinds.patch_positions import AxialRope
from specs.kinds.token_heads import CTC
from specs.model.model import Model
from zoo.checkpoints.carried import stated_in
from zoo.core.graph_names import GRID
from zoo.families.common.config import CONFIG
from zoo.record.manifest import Manifest
from zoo.record.records import GraphRecord
from zoo.record.usage import Usage
from zoo.tracing.task import Task
from zoo.tracing.tasks import tasks_with_merged_decoder, tasks_with_own_cache

_CLASSES = frozenset(
    [
        "AlbertForMaskedLM", "AlbertForQuestionAnswering", "AlbertForSequenceClassification", "AlbertModel",
        "ApertusForCausalLM", "ArceeForCausalLM", "BartForConditionalGeneration", "BeitForImageClassification",
        "BeitModel", "BertForMaskedLM", "BertForQuestionAnswering", "BertForSequenceClassification",
        "BertForTokenClassification", "BertModel", "BloomForCausalLM", "CLIPModel", "CamembertForMaskedLM",
        "CamembertForQuestionAnswering", "CamembertForSequenceClassification", "CamembertForTokenClassification",
        "CamembertModel", "CodeGenForCausalLM", "Cohere2ForCausalLM", "CohereForCausalLM", "DINOv3ViTModel",
        "DebertaV2ForMaskedLM", "DebertaV2ForQuestionAnswering", "DebertaV2ForSequenceClassification",
        "DebertaV2ForTokenClassification", "DebertaV2Model", "DeepseekV3ForCausalLM", "DeiTForImageClassification",
        "DeiTModel", "Dinov2Model", "Dinov2WithRegistersModel", "DistilBertForMaskedLM",
        "DistilBertForQuestionAnswering", "DistilBertForSequenceClassification", "DistilBertForTokenClassification",
        "DistilBertModel", "ElectraForMaskedLM", "ElectraForQuestionAnswering", "ElectraForSequenceClassification",
        "ElectraForTokenClassification", "ElectraModel", "Ernie4_5ForCausalLM", "EuroBertForMaskedLM",
        "EuroBertForSequenceClassification", "EuroBertForTokenClassification", "EuroBertModel", "FalconForCausalLM",
        "FalconH1ForCausalLM", "GPT2LMHeadModel", "GPTBigCodeForCausalLM", "GPTJForCausalLM", "GPTNeoForCausalLM",
        "GPTNeoXForCausalLM", "Gemma2ForCausalLM", "Gemma3ForCausalLM", "GemmaForCausalLM", "GlmForCausalLM",
        "GptOssForCausalLM", "GraniteForCausalLM", "GraniteMoeHybridForCausalLM", "HeliumForCausalLM",
        "HubertForCTC", "HubertForSequenceClassification", "HubertModel", "HunYuanDenseV1ForCausalLM",
        "Idefics3ForConditionalGeneration", "Lfm2ForCausalLM", "Lfm2MoeForCausalLM", "LlamaForCausalLM",
        "LlavaForConditionalGeneration", "LongT5ForConditionalGeneration", "M2M100ForConditionalGeneration",
        "MBartForConditionalGeneration", "MPNetForMaskedLM", "MPNetForQuestionAnswering",
        "MPNetForSequenceClassification", "MPNetForTokenClassification", "MPNetModel",
        "MT5ForConditionalGeneration", "MarianMTModel", "MistralForCausalLM", "ModernBertDecoderForCausalLM",
        "ModernBertForMaskedLM", "ModernBertForSequenceClassification", "ModernBertForTokenClassification",
        "ModernBertModel", "MoonshineForConditionalGeneration", "MptForCausalLM", "NemotronHForCausalLM",
        "NomicBertModel", "OPTForCausalLM", "Olmo2ForCausalLM", "Olmo3ForCausalLM", "OlmoForCausalLM",
        "OwlViTForObjectDetection", "PaliGemmaForConditionalGeneration", "ParakeetForCTC", "Phi3ForCausalLM",
        "PhiForCausalLM", "Qwen2ForCausalLM", "Qwen2VLForConditionalGeneration",
        "Qwen2_5_VLForConditionalGeneration", "Qwen2MoeForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM",
        "Qwen3VLForConditionalGeneration", "Qwen3NextForCausalLM", "Qwen3_5ForCausalLM",
        "Qwen3_5ForConditionalGeneration", "Qwen3_5MoeForConditionalGeneration", "RobertaForMaskedLM",
        "RobertaForQuestionAnswering", "RobertaForSequenceClassification", "RobertaForTokenClassification",
        "RobertaModel", "SiglipModel", "SmolLM3ForCausalLM", "SmolVLMForConditionalGeneration",
        "StableLmForCausalLM", "Starcoder2ForCausalLM", "T5ForConditionalGeneration", "ViTForImageClassification",
        "ViTModel", "VisionEncoderDecoderModel", "Wav2Vec2BertForCTC", "Wav2Vec2BertForSequenceClassification",
        "Wav2Vec2BertModel", "Wav2Vec2ForAudioFrameClassification", "Wav2Vec2ForCTC",
        "Wav2Vec2ForSequenceClassification", "Wav2Vec2Model", "WavLMForAudioFrameClassification", "WavLMForCTC",
        "WavLMForSequenceClassification", "WavLMModel", "WhisperForConditionalGeneration", "XLMRobertaForMaskedLM",
        "XLMRobertaForQuestionAnswering", "XLMRobertaForSequenceClassification", "XLMRobertaForTokenClassification",
        "XLMRobertaModel",
    ]
)  # fmt: skip
"""The model classes of version 4.2 that our configs may name."""

_STATES = {
    **dict.fromkeys(("lfm2", "lfm2_moe"), ("conv",)),
    **dict.fromkeys(("granitemoehybrid", "nemotron_h", "falcon_h1"), ("conv", "ssm")),
    **dict.fromkeys(
        ("qwen3_next", "qwen3_5", "qwen3_5_moe", "qwen3_5_text", "qwen3_5_moe_text"), ("conv", "recurrent")
    ),
}
"""The constant-size states that the client creates for a family's layers; it has none for other families."""

_OLD_GRID = "grid_thw"
"""The name of image grids in Qwen2-VL."""

_LISTS = {"layer_types", "layers_block_type"}
"""The fields that list the kinds of layers."""

_LAYERS = {"linear_attention": "mamba", "full_attention": "attention"}
"""The client's names for layers with an SSM state and with attention, as in transformers before version 5."""

_DTYPES = {"fp32": "fp32", "fp16": "fp16", "int8": "q8", "int4": "q4", "q4f16": "q4f16"}
"""The client's names for precisions."""


def _tasks(model: Any, spec: Model, last_only: bool) -> list[Task]:
    """The graphs of a model; the image graph takes the inputs that the class's preprocessor produces."""
    if _caches_own_alone(spec):
        return tasks_with_own_cache(model, spec, last_only)
    tasks = tasks_with_merged_decoder(model, spec, last_only, images_by_row=_reads_images_by_row(spec))
    return [_renamed(task, GRID, _OLD_GRID) for task in tasks] if _names_grids_shortly(spec) else tasks


def _renamed(task: Task, old: str, new: str) -> Task:
    """A task with another name for one of its inputs."""
    inputs = tuple(
        replace(placeholder, name=new) if placeholder.name == old else placeholder
        for placeholder in task.inputs
    )
    return replace(
        task, inputs=inputs, call=lambda model, values: task.call(model, {**values, old: values.get(new)})
    )


def _names_grids_shortly(spec: Model) -> bool:
    """Whether the client names grids as in Qwen2-VL, recognized by an image encoder with layer norms and without learned
    positions."""
    if not spec.packs_images or spec.image is None:
        return False
    return spec.image.named_block(None).norm.kind == "layer_norm" and isinstance(
        spec.position_of(spec.image), AxialRope
    )


def _caches_own_alone(spec: Model) -> bool:
    """Whether the client passes the decoder no cache of the encoder's keys and values: for GPT-2, recognized by pre-norm, after an
    image encoder."""
    if spec.architecture != "encoder-decoder" or spec.encoder is None or spec.decoder is None:
        return False
    return spec.embedding_of(spec.encoder).of_patches and spec.decoder.named_block(None).kind == "pre_norm"


def _reads_images_by_row(spec: Model) -> bool:
    """Whether images have an axis per row: in Idefics 3 and SmolVLM, recognized by a linear connector without bias."""
    return isinstance(spec.connector, LinearConnector) and not spec.connector.bias


def _misfit(deployment: Deployment) -> str | None:
    if deployment.spec.decoder is not None and deployment.spec.decoder.bidirectional == "image":
        return (
            "it does not tell its decoder which tokens are of images, which see each other in both directions"
        )
    if (
        fault := unfit_decoder(deployment)
        or unfit_hidden_states(deployment)
        or unfit_spans(deployment)
        or unfit_precision(deployment)
        or deployment.unconfigured
    ):
        return fault
    (class_name,) = deployment.config["architectures"]
    if class_name not in _CLASSES:
        return f"it lacks the class {class_name}"
    if fault := _unfit_states(deployment):
        return fault
    if deployment.config.get("multi_query"):
        return "it expects keys and values in one tensor where multi_query is true, and the model has two"
    return None


def _unfit_states(deployment: Deployment) -> str | None:
    """Return the reason why the client cannot hold a layer's state; None if it can."""
    if not deployment.spec.decodes:
        return None
    family = deployment.config["model_type"]
    held = _STATES.get(family, ())
    for state in deployment.model.decoder.states:
        names = tuple(tensor.name for tensor in state if not tensor.grows)
        if names and names != held:
            requirement = f"{' and '.join(held)} as states" if held else "no states of constant size"
            return f"it expects {requirement} of {family}, and a layer has {named(state)}"
    return None


def _settings(deployment: Deployment, shared: bool) -> dict[str, Data]:
    settings = dict(OPTIMUM.settings(deployment, shared))
    client = {"dtype": _DTYPES[deployment.precision.name], "use_external_data_format": True}
    config = {**settings[CONFIG], "transformers.js_config": client}
    if "ssm" in _STATES.get(config["model_type"], ()):
        for name in config.keys() & _LISTS:
            config[name] = [_LAYERS.get(kind, kind) for kind in config[name]]
    return {**tokenizer_settings(deployment), **settings, CONFIG: config, **_collapsing(deployment)}


def _collapsing(deployment: Deployment) -> dict[str, Data]:
    """Return a tokenizer that drops repetitions and blanks from a transcript: the client leaves this to the tokenizer."""
    head = deployment.spec.head
    fields = stated_in(deployment.origin / TOKENS) if isinstance(head, CTC) else {}
    collapsing = collapsing_tokenizer(fields, head.blank) if fields and isinstance(head, CTC) else None
    return {} if collapsing is None else {TOKENS: collapsing}


def _inputs(
    spec: Model, graph: GraphRecord, names: list[str], *, tokenized: bool
) -> tuple[list[str], list[str]]:
    """The names that a program imports, and its lines that make the inputs."""
    embedding, connector = spec.embedding_of(spec.first_stack), spec.connector
    if tokenized:
        inputs = [
            "const tokenizer = await AutoTokenizer.from_pretrained(directory);",
            'const inputs = tokenizer("Once upon a time");',
        ]
    elif embedding.takes_tokens:
        numbers = [f"{token}n" for token in example_ids(spec, graph).split(", ")]
        if connector is not None:
            numbers.insert(0, f"...Array({_vectors(spec, connector)}).fill({connector.token}n)")
        ids = f"BigInt64Array.of({', '.join(numbers)})"
        inputs = [
            f"const ids = {ids}; // from the model's tokenizer",
            'const input_ids = new Tensor("int64", ids, [1, ids.length]);',
            'const attention_mask = new Tensor("int64", ids.map(() => 1n), [1, ids.length]);',
            "const inputs = { input_ids, attention_mask };",
        ]
    else:
        sizes = [1, *example_sizes(graph.inputs[embedding.input_name])]
        inputs = [
            f"const sizes = {sizes};",
            "const values = new Float32Array(sizes.reduce((a, b) => a * b)); // from the preprocessor",
            f'const inputs = {{ {embedding.input_name}: new Tensor("float32", values, sizes) }};',
        ]
        if "attention_mask" in graph.inputs:
            inputs += [
                "const ones = new BigInt64Array(sizes[1]).fill(1n);",
                'inputs.attention_mask = new Tensor("int64", ones, sizes.slice(0, 2));',
            ]
    if spec.packs_images:
        grid, patches = example_grid(spec)
        sizes = [patches, *(size for size in graph.inputs["pixel_values"][1:] if isinstance(size, int))]
        inputs += [
            f'inputs.pixel_values = new Tensor("float32", new Float32Array({math.prod(sizes)}), {sizes}); // from the preprocessor',
            f'inputs.{GRID} = new Tensor("int64", BigInt64Array.of({", ".join(f"{n}n" for n in grid)}), [1, 3]);',
        ]
        names = list(dict.fromkeys([*names[:-1], "Tensor", "env"]))
    elif spec.image is not None:
        image = spec.embedding_of(spec.image)
        sizes = [*([1] if _reads_images_by_row(spec) else []), 1, *image.input_shape(None)]
        values = f"new Float32Array({math.prod(sizes)})"
        inputs.append(
            f'inputs.{image.input_name} = new Tensor("float32", {values}, {sizes}); // from the preprocessor'
        )
        names = list(dict.fromkeys([*names[:-1], "Tensor", "env"]))
    return names, inputs


def _usage(spec: Model, manifest: Manifest) -> Usage:
    suffix = purpose_of(spec).suffix
    name = "AutoModel" if suffix == "FeatureExtraction" else f"AutoModelFor{suffix}"
    graph = next(iter(manifest.graphs.values()))
    embedding = spec.embedding_of(spec.first_stack)
    connector = spec.connector
    tokenized = TOKENIZER in manifest.files and embedding.takes_tokens and connector is None
    names = [name, "AutoTokenizer" if tokenized else "Tensor", "env"]
    names, inputs = _inputs(spec, graph, names, tokenized=tokenized)
    generates = spec.head.kind == "language_modeling"
    start = ", decoder_start_token_id: 0" if lacks_start_token(spec, manifest) else ""
    run = f"model.generate({{ ...inputs, max_new_tokens: 20{start} }})" if generates else "model(inputs)"
    lines = [
        f'import {{ {", ".join(names)} }} from "@huggingface/transformers";',
        "",
        "env.allowRemoteModels = false;",
        "const directory = process.cwd();",
        f"const model = await {name}.from_pretrained(directory);",
        *inputs,
        f"console.log(await {run});",
    ]
    return Usage("javascript", "\n".join(lines), ["@huggingface/transformers"])


def _vectors(spec: Model, connector: ConnectorKind) -> int:
    """The number of vectors of the example image."""
    return example_grid(spec)[1] // connector.square**2 if spec.packs_images else spec.vectors_per_image


LAYOUT = Layout(
    "transformers-js",
    client="transformers.js",
    guide=(
        "transformers.js 4.2, in Node and in browsers",
        "`onnx/model.onnx`; or `onnx/encoder_model.onnx` and `onnx/decoder_model_merged.onnx` for all steps; with "
        "`onnx/model.onnx`, `onnx/text_model.onnx` and `onnx/vision_model.onnx` of a dual encoder; "
        "`onnx/vision_encoder.onnx`, `onnx/embed_tokens.onnx` and `onnx/decoder_model_merged.onnx` of a vision-language model",
        "`config.json`, `generation_config.json`, tokenizer",
    ),
    tasks=_tasks,
    misfit=_misfit,
    settings=_settings,
    usage=_usage,
    graph="onnx/{task}{suffix}.onnx",
    data="onnx/{task}{suffix}.onnx_data",
    suffixes={"fp16": "_fp16", "int8": "_quantized", "int4": "_q4", "q4f16": "_q4f16"},
    padding="either",
    lacks=frozenset(
        {"CausalConvWithState", "GatedRMSNorm", "LinearAttention", "LinearAttentionGate"}
    ),  # ONNX Runtime 1.24
)
