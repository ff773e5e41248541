"""The layout of onnxruntime-genai, which loads decoders that generate text, and Gemma 3 with its images."""

from __future__ import annotations

from collections.abc import Mapping

from exporters.layouts.example_input import TOKENIZER, example_ids
from exporters.layouts.genai_images import (
    PROCESSOR,
    decoder_inputs,
    image_sections,
    image_usage,
    processor,
    unfit_images,
)
from exporters.layouts.genai_state import genai_states, unfit_states
from exporters.layouts.layout import Data, Deployment, Layout, draft_usage, tokenizer_settings, unfit_decoder
from exporters.target.providers import CPU, CUDA, WEBGPU
from specs.model.model import Model
from zoo.core.graph_names import HIDDEN, HIDDEN_STATES
from zoo.record.manifest import Manifest
from zoo.record.usage import Usage
from zoo.tracing.task import WindowCache
from zoo.tracing.tasks import tasks_by_ids

CONFIG = "genai_config.json"

ENDLESS = 4096
"""The context length written for a model without a limit."""

_PROVIDERS: dict[str, str | None] = {CPU: None, CUDA: "cuda", WEBGPU: "webgpu"}
"""The client's names for execution providers; the CPU's needs none."""

_IDS = ("bos_token_id", "eos_token_id", "pad_token_id")
_SEARCH = ("do_sample", "temperature", "top_k", "top_p", "repetition_penalty")


def _misfit(deployment: Deployment) -> str | None:
    spec, model = deployment.spec, deployment.model
    if spec.architecture not in ("decoder", "vision-language"):
        return f"it loads only decoders, and the architecture is {spec.architecture}"
    if fault := unfit_decoder(deployment) or (unfit_images(deployment) if spec.image else None):
        return fault
    if deployment.target.providers[0] not in _PROVIDERS:
        return f"it has no execution provider for target {deployment.target.name}"
    embedding = spec.embedding_of(spec.last_stack)
    if embedding.segment_count > 1:
        return "it does not provide token types"
    return unfit_states(model.decoder.states)


def _settings(deployment: Deployment, shared: bool) -> dict[str, Data]:
    spec, generation, stack = deployment.spec, deployment.generation, deployment.model.decoder
    attention = next(iter(stack.attentions.values()), None)
    key_value_heads, _, head_size = (1, 0, 1) if attention is None else attention.state[0].dims
    states = genai_states(stack.states)
    length = spec.context_length_of(spec.last_stack) or ENDLESS
    decoder: Data = {
        "filename": LAYOUT.graph_path("model"),
        "session_options": {
            "log_id": "onnxruntime-genai",
            "provider_options": _provider_options(deployment),
        },
        "hidden_size": spec.d_model,
        "head_size": head_size,
        "num_attention_heads": 1 if attention is None else attention.heads,
        "num_key_value_heads": key_value_heads,
        "num_hidden_layers": len(stack.blocks),
        **states.facts,
        "inputs": {"input_ids": "input_ids", "attention_mask": "attention_mask", **states.inputs},
        "outputs": {"logits": "logits", **states.outputs},
    }
    if deployment.windows:
        decoder["sliding_window"] = _window(deployment.windows)
    if spec.image is not None:
        del decoder["inputs"]["input_ids"]
        decoder["inputs"] |= decoder_inputs(spec)
    if HIDDEN in deployment.outputs:
        decoder["outputs"]["hidden_states"] = HIDDEN
    if spec.reads_hidden_states:
        decoder["inputs"]["hidden_states"] = HIDDEN_STATES
    model = {"type": states.type, "vocab_size": spec.vocab_size, "context_length": length, "decoder": decoder}
    if HIDDEN in deployment.outputs and not spec.reads_hidden_states:  # for MtpGenerator
        model["mtp"] = {"main_hidden_states": HIDDEN, "outputs": {"hidden_states": HIDDEN}}
    model |= {name: generation[name] for name in _IDS if name in generation}
    # With a shared buffer it also overwrites constant-size states that are still read.
    in_place = shared and all(tensor.grows for state in stack.states for tensor in state)
    search = {"max_length": length, "past_present_share_buffer": in_place}
    search |= {name: generation[name] for name in _SEARCH if name in generation}
    files = {CONFIG: {"model": model, "search": search}, **tokenizer_settings(deployment)}
    if spec.image is None:
        return files
    model |= image_sections(LAYOUT.graph_path)
    return {**files, PROCESSOR: processor(deployment)}


def _window(windows: Mapping[int, WindowCache]) -> Data:
    """The section that makes the client allocate short caches; the attention itself drops what is before the window."""
    cache = next(iter(windows.values()))
    return {
        "window_size": cache.window,
        "slide_key_value_cache": False,
        "slide_inputs": False,
        "layers": [*windows],
        "cache_slack": cache.slots - cache.window,
    }


def _provider_options(deployment: Deployment) -> list[Data]:
    name = _PROVIDERS[deployment.target.providers[0]]
    if name is None:
        return []
    return [{name: {"enable_cuda_graph": "1"} if deployment.cuda_graph else {}}]


def _usage(spec: Model, manifest: Manifest) -> Usage:
    graph = [*manifest.graphs.values()][-1]
    tokenized = TOKENIZER in manifest.files
    prompt = 'tokenizer.encode("Once upon a time")' if tokenized else f"[{example_ids(spec, graph)}]"
    shown = "tokenizer.decode(tokens)" if tokenized else "tokens"
    if spec.reads_hidden_states:
        return draft_usage()
    if spec.image is not None:
        return Usage("python", image_usage(graph), ["onnxruntime-genai"])
    slots = () if manifest.cache is None else manifest.cache.windows.values()
    length = max(min(64, graph.context_length or 64), *slots, 0)
    lines = [
        "import onnxruntime_genai as genai",
        "",
        'model = genai.Model(".")',
        *(["tokenizer = genai.Tokenizer(model)"] if tokenized else []),
        f"prompt = {prompt}",
        "parameters = genai.GeneratorParams(model)",
        f"parameters.set_search_options(max_length={length}, do_sample=False)",
        "generator = genai.Generator(model, parameters)",
        "generator.append_tokens(prompt)",
        "while not generator.is_done():",
        "    generator.generate_next_token()",
        "tokens = generator.get_sequence(0)",
        f"print({shown})",
    ]
    return Usage("python", "\n".join(lines), ["onnxruntime-genai"])


LAYOUT = Layout(
    "genai",
    client="onnxruntime-genai",
    guide=(
        "onnxruntime-genai 0.18: decoders, and Gemma 3 with an image",
        "`model.onnx`; with `vision_encoder.onnx` and `embedding.onnx` of a vision-language model",
        f"`genai_config.json`, tokenizer, `{PROCESSOR}`",
    ),
    tasks=tasks_by_ids,
    misfit=_misfit,
    settings=_settings,
    usage=_usage,
    cached_windows=1,
    half_drafts=True,  # 0.18 casts scores to float32, which fails for those that are
)
