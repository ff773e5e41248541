"""What transformers.js loads, in Node and in browsers."""

from __future__ import annotations

from exporters.layouts.layout import Data, Deployment, Layout, unfit_decoder
from exporters.layouts.optimum import OPTIMUM
from exporters.tasks import tasks_with_merged_decoder
from zoo.configs.config import CONFIG

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


def _misfit(deployment: Deployment) -> str | None:
    if fault := unfit_decoder(deployment) or deployment.unconfigured:
        return fault
    (class_name,) = deployment.config["architectures"]
    if class_name not in _CLASSES:
        return f"it has no class {class_name}"
    if deployment.config.get("multi_query"):
        return "where multi_query is true, it takes keys and values to be in one cache, and they are in two"
    return None


def _settings(deployment: Deployment, shared: bool) -> dict[str, Data]:
    settings = dict(OPTIMUM.settings(deployment, shared))
    client = {"dtype": "fp32", "use_external_data_format": True}
    return {**settings, CONFIG: {**settings[CONFIG], "transformers.js_config": client}}


TRANSFORMERS_JS = Layout(
    "transformers-js",
    client="transformers.js",
    tasks=tasks_with_merged_decoder,
    misfit=_misfit,
    settings=_settings,
    graph="onnx/{task}.onnx",
    data="onnx/{task}.onnx_data",
    padding="either",
)
