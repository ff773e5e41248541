"""What transformers.js loads, in Node and in browsers."""

from __future__ import annotations

from exporters.layouts.layout import Data, Deployment, Layout, unfit_decoder, unfit_precision
from exporters.layouts.optimum import OPTIMUM
from zoo.configs.config import CONFIG
from zoo.tracing.tasks import tasks_with_merged_decoder

_CLASSES = frozenset(
    [
        "AlbertForMaskedLM",
        "AlbertForQuestionAnswering",
        "AlbertForSequenceClassification",
        "AlbertModel",
        "BertForMaskedLM",
        "BertForQuestionAnswering",
        "BertForSequenceClassification",
        "BertForTokenClassification",
        "BertModel",
        "DistilBertForMaskedLM",
        "DistilBertForQuestionAnswering",
        "DistilBertForSequenceClassification",
        "DistilBertForTokenClassification",
        "DistilBertModel",
        "ElectraForMaskedLM",
        "ElectraForQuestionAnswering",
        "ElectraForSequenceClassification",
        "ElectraForTokenClassification",
        "ElectraModel",
        "ModernBertForMaskedLM",
        "ModernBertForSequenceClassification",
        "ModernBertForTokenClassification",
        "ModernBertModel",
        "RobertaForMaskedLM",
        "RobertaForQuestionAnswering",
        "RobertaForSequenceClassification",
        "RobertaForTokenClassification",
        "RobertaModel",
        "ViTForImageClassification",
        "ViTModel",
        "XLMRobertaForMaskedLM",
        "XLMRobertaForQuestionAnswering",
        "XLMRobertaForSequenceClassification",
        "XLMRobertaForTokenClassification",
        "XLMRobertaModel",
        "BloomForCausalLM",
        "DeepseekV3ForCausalLM",
        "FalconForCausalLM",
        "GPT2LMHeadModel",
        "GPTJForCausalLM",
        "GPTNeoForCausalLM",
        "GPTNeoXForCausalLM",
        "Gemma2ForCausalLM",
        "Gemma3ForCausalLM",
        "GemmaForCausalLM",
        "GptOssForCausalLM",
        "LlamaForCausalLM",
        "MistralForCausalLM",
        "OPTForCausalLM",
        "Olmo2ForCausalLM",
        "OlmoForCausalLM",
        "Phi3ForCausalLM",
        "PhiForCausalLM",
        "Qwen2ForCausalLM",
        "Qwen2MoeForCausalLM",
        "Qwen3ForCausalLM",
        "Qwen3MoeForCausalLM",
        "SmolLM3ForCausalLM",
        "StableLmForCausalLM",
        "BartForConditionalGeneration",
        "MBartForConditionalGeneration",
        "MT5ForConditionalGeneration",
        "MarianMTModel",
        "T5ForConditionalGeneration",
        "WhisperForConditionalGeneration",
    ]
)
"""The classes of version 4.2, of those that our configs name."""

_DTYPES = {"fp32": "fp32", "fp16": "fp16", "int8": "q8", "int4": "q4"}
"""What it calls the precisions."""


def _misfit(deployment: Deployment) -> str | None:
    if fault := unfit_decoder(deployment) or unfit_precision(deployment) or deployment.unconfigured:
        return fault
    (class_name,) = deployment.config["architectures"]
    if class_name not in _CLASSES:
        return f"it has no class {class_name}"
    if deployment.config.get("multi_query"):
        return "where multi_query is true, it takes keys and values to be in one cache, and they are in two"
    return None


def _settings(deployment: Deployment, shared: bool) -> dict[str, Data]:
    settings = dict(OPTIMUM.settings(deployment, shared))
    client = {"dtype": _DTYPES[deployment.precision.name], "use_external_data_format": True}
    return {**settings, CONFIG: {**settings[CONFIG], "transformers.js_config": client}}


TRANSFORMERS_JS = Layout(
    "transformers-js",
    client="transformers.js",
    tasks=tasks_with_merged_decoder,
    misfit=_misfit,
    settings=_settings,
    graph="onnx/{task}{suffix}.onnx",
    data="onnx/{task}{suffix}.onnx_data",
    suffixes={"fp16": "_fp16", "int8": "_quantized", "int4": "_q4"},
    padding="either",
)
