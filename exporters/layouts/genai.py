"""What onnxruntime-genai loads: decoders that generate text."""

from __future__ import annotations

from exporters.layouts.layout import Data, Deployment, Layout, unfit_decoder
from specs.embedding import Tokens
from zoo.tracing.tasks import tasks

CONFIG = "genai_config.json"

ENDLESS = 4096
"""The longest sequence that is announced of a model that has no limit of its own."""

_PROVIDERS: dict[str, list[Data]] = {"portable": [], "cpu": [], "cuda": [{"cuda": {}}]}
"""The providers of targets as it calls them; that for processors goes without saying."""

_IDS = ("bos_token_id", "eos_token_id", "pad_token_id")
_SEARCH = ("do_sample", "temperature", "top_k", "top_p", "repetition_penalty")


def _misfit(deployment: Deployment) -> str | None:
    spec, model = deployment.spec, deployment.model
    if spec.architecture != "decoder":
        return f"it loads decoders, and this is an {spec.architecture}"
    if fault := unfit_decoder(deployment):
        return fault
    if deployment.target.name not in _PROVIDERS:
        return f"it has no provider for target {deployment.target.name}"
    embedding = spec.embedding_of(spec.last_stack)
    if isinstance(embedding, Tokens) and embedding.token_types > 1:
        return "it gives no token types"
    for block in model.decoder.blocks:
        _, key, value = block.attention.cached
        if key != value:
            return f"it takes keys and values to be of one width, and they are {key} and {value} wide"
    return None


def _settings(deployment: Deployment, shared: bool) -> dict[str, Data]:
    spec, generation = deployment.spec, deployment.generation
    attention = deployment.model.decoder.blocks[0].attention
    key_value_heads, head_size, _ = attention.cached
    length = spec.context_length_of(spec.last_stack) or ENDLESS
    decoder = {
        "filename": GENAI.graph_path("model"),
        "session_options": {
            "log_id": "onnxruntime-genai",
            "provider_options": _PROVIDERS[deployment.target.name],
        },
        "hidden_size": spec.d_model,
        "head_size": head_size,
        "num_attention_heads": attention.heads,
        "num_key_value_heads": key_value_heads,
        "num_hidden_layers": len(deployment.model.decoder.blocks),
        "inputs": {
            "input_ids": "input_ids",
            "attention_mask": "attention_mask",
            "past_key_names": "past_key_values.%d.key",
            "past_value_names": "past_key_values.%d.value",
        },
        "outputs": {
            "logits": "logits",
            "present_key_names": "present.%d.key",
            "present_value_names": "present.%d.value",
        },
    }
    model = {"type": "decoder", "vocab_size": spec.vocab_size, "context_length": length, "decoder": decoder}
    model |= {name: generation[name] for name in _IDS if name in generation}
    search = {"max_length": length, "past_present_share_buffer": shared}
    search |= {name: generation[name] for name in _SEARCH if name in generation}
    return {CONFIG: {"model": model, "search": search}}


GENAI = Layout("genai", client="onnxruntime-genai", tasks=tasks, misfit=_misfit, settings=_settings)
