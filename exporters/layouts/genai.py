"""The layout of onnxruntime-genai, which loads decoders that generate text."""

from __future__ import annotations

from exporters.layouts.example_input import TOKENIZER, example_ids
from exporters.layouts.genai_state import genai_states, unfit_states
from exporters.layouts.layout import Data, Deployment, Layout, unfit_decoder
from exporters.providers import CPU, CUDA
from specs.embedding import Tokens
from specs.model import Model
from zoo.manifest import Manifest
from zoo.tracing.tasks import tasks
from zoo.usage import Usage

CONFIG = "genai_config.json"

ENDLESS = 4096
"""The context length written for a model without a limit."""

_PROVIDERS: dict[str, list[Data]] = {CPU: [], CUDA: [{"cuda": {}}]}
"""The client's names for execution providers; the CPU's needs none."""

_IDS = ("bos_token_id", "eos_token_id", "pad_token_id")
_SEARCH = ("do_sample", "temperature", "top_k", "top_p", "repetition_penalty")


def _misfit(deployment: Deployment) -> str | None:
    spec, model = deployment.spec, deployment.model
    if spec.architecture != "decoder":
        return f"it loads only decoders, and the architecture is {spec.architecture}"
    if fault := unfit_decoder(deployment):
        return fault
    if deployment.target.providers[0] not in _PROVIDERS:
        return f"it has no execution provider for target {deployment.target.name}"
    embedding = spec.embedding_of(spec.last_stack)
    if isinstance(embedding, Tokens) and embedding.token_types > 1:
        return "it does not provide token types"
    return unfit_states(model.decoder.states)


def _settings(deployment: Deployment, shared: bool) -> dict[str, Data]:
    spec, generation, stack = deployment.spec, deployment.generation, deployment.model.decoder
    attention = next(iter(stack.attentions.values()), None)
    key_value_heads, _, head_size = (1, 0, 1) if attention is None else attention.state[0].dims
    states = genai_states(stack.states)
    length = spec.context_length_of(spec.last_stack) or ENDLESS
    decoder = {
        "filename": LAYOUT.graph_path("model"),
        "session_options": {
            "log_id": "onnxruntime-genai",
            "provider_options": _PROVIDERS[deployment.target.providers[0]],
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
    model = {"type": states.type, "vocab_size": spec.vocab_size, "context_length": length, "decoder": decoder}
    model |= {name: generation[name] for name in _IDS if name in generation}
    # With a shared buffer it also writes states of constant size where they are still read.
    in_place = shared and all(each.grows for state in stack.states for each in state)
    search = {"max_length": length, "past_present_share_buffer": in_place}
    search |= {name: generation[name] for name in _SEARCH if name in generation}
    return {CONFIG: {"model": model, "search": search}}


def _usage(spec: Model, manifest: Manifest) -> Usage:
    (graph,) = manifest.graphs.values()
    tokenized = TOKENIZER in manifest.files
    prompt = 'tokenizer.encode("Once upon a time")' if tokenized else f"[{example_ids(spec, graph)}]"
    shown = "tokenizer.decode(tokens)" if tokenized else "tokens"
    lines = [
        "import onnxruntime_genai as genai",
        "",
        'model = genai.Model(".")',
        *(["tokenizer = genai.Tokenizer(model)"] if tokenized else []),
        f"prompt = {prompt}",
        "parameters = genai.GeneratorParams(model)",
        f"parameters.set_search_options(max_length={min(64, graph.context_length or 64)}, do_sample=False)",
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
    guide=("onnxruntime-genai 0.18: decoders", "`model.onnx`", "`genai_config.json`, tokenizer"),
    tasks=tasks,
    misfit=_misfit,
    settings=_settings,
    usage=_usage,
)
