"""Reference models at tiny sizes, the specs that describe them, and how the two are compared."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from specs.model.model import Model
from tests.zoo.filled import stored_model
from zoo.builder import ZooModel

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
torch.set_num_threads(1)

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "relu": "relu",
    "relu2": "relu2",
    "silu": "silu",
    "quick_gelu": "quick_gelu",
}
"""Transformers' names of activations, and ours."""

TOLERANCE = 1e-5


def build(model_class: type, config: transformers.PreTrainedConfig, seed: int) -> Any:
    """A reference model with every parameter drawn, so that no norm or bias is at its default.

    Each expert has a product of its own, and the biases that correct the choice of experts, which are buffers, are drawn too.
    """
    config._attn_implementation = "eager"
    for part in (config, *(getattr(config, name, None) for name in config.sub_configs)):
        if isinstance(part, transformers.PreTrainedConfig):
            part._experts_implementation = "eager"
    model = model_class(config).eval()
    redraw(model, seed)
    generator = torch.Generator().manual_seed(seed + 1)
    for name, buffer in model.named_buffers():
        if name.endswith(("e_score_correction_bias", "expert_bias")):
            buffer.normal_(0.0, 0.1, generator=generator)
    return model


def redraw(model: nn.Module, seed: int) -> None:
    """Matrices and tables from N(0, 0.2), biases from N(0, 0.1), the weights of norms around 1."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(0.0, 0.2 if parameter.dim() > 1 else 0.1, generator=generator)
            if parameter.dim() == 1 and name.endswith("weight"):
                parameter.add_(1)


def load(spec: Model, path: Path, weights: str | None = None) -> ZooModel:
    """A model with its weights read from a checkpoint."""
    return stored_model(spec, weights or str(path))


def through_checkpoint(reference: transformers.PreTrainedModel, spec: Model, directory: Path) -> ZooModel:
    """Our model of a reference, by way of the checkpoint that the reference writes."""
    reference.save_pretrained(directory)
    return load(spec, directory)


def ragged(batch: int, length: int, vocab: int, side: str, seed: int) -> tuple[Tensor, Tensor]:
    """Token ids and mask, B T each: rows of different lengths, the first one whole, padded with random tokens."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, vocab, (batch, length), generator=generator)
    lengths = torch.linspace(length, max(1, length // 3), batch).long()
    mask = (torch.arange(length) < lengths[:, None]).long()
    return ids, mask.flip(1) if side == "left" else mask


def positions(mask: Tensor) -> Tensor:
    """The position of each real token among the real ones."""
    return (mask.cumsum(1) - 1).clamp(min=0)


def difference(ours: Tensor, theirs: Tensor, mask: Tensor | None = None) -> float:
    """The largest absolute difference at real positions, at unit scale."""
    assert ours.shape == theirs.shape
    if mask is not None:
        ours, theirs = ours[mask.bool()], theirs[mask.bool()]
    scale = max(1.0, theirs.std().item())
    largest = ((ours - theirs).abs().max() / scale).item()
    assert theirs.abs().max() > 1e-3
    return largest


def assert_close(ours: Tensor, theirs: Tensor, mask: Tensor | None = None) -> None:
    largest = difference(ours, theirs, mask)
    assert largest <= TOLERANCE, f"differs by {largest:.2e}"


def step_through(model: ZooModel, ids: Tensor, mask: Tensor, prefill: int) -> Tensor:
    """The logits of a decoder, B T V, that is given ``prefill`` tokens and then one at a time."""
    outputs = model(ids[:, :prefill], mask[:, :prefill])
    logits = [outputs.logits]
    for end in range(prefill + 1, ids.shape[1] + 1):
        outputs = model(ids[:, end - 1 : end], mask[:, :end], outputs.present_key_values)
        logits.append(outputs.logits)
    return torch.cat(logits, 1)


def bert_spec(config: transformers.BertConfig, head: dict[str, object]) -> Model:
    norm = {"kind": "layer_norm", "eps": config.layer_norm_eps}
    return Model.model_validate(
        {
            "name": "tiny-bert", "architecture": "encoder", "vocab_size": config.vocab_size,
            "d_model": config.hidden_size, "context_length": config.max_position_embeddings,
            "position": {"kind": "learned"},
            "embedding": {"token_types": config.type_vocab_size, "norm": norm},
            "encoder": {
                "layers": config.num_hidden_layers,
                "block": {
                    "kind": "post_norm", "norm": norm,
                    "attention": {"kind": "multi_head", "heads": config.num_attention_heads},
                    "feed_forward": {
                        "kind": "mlp", "hidden": config.intermediate_size,
                        "activation": ACTIVATIONS[config.hidden_act],
                    },
                },
            },
            "head": head,
        }
    )  # fmt: skip


def gpt2_spec(config: transformers.GPT2Config, head: dict[str, object] | None = None) -> Model:
    attention: dict[str, object] = {"kind": "multi_head", "heads": config.n_head}
    if not config.scale_attn_weights:
        attention["scale"] = 1.0
    return Model.model_validate(
        {
            "name": "tiny-gpt2", "architecture": "decoder", "vocab_size": config.vocab_size,
            "d_model": config.n_embd, "context_length": config.n_positions, "position": {"kind": "learned"},
            "decoder": {
                "layers": config.n_layer,
                "block": {
                    "kind": "pre_norm",
                    "norm": {"kind": "layer_norm", "eps": config.layer_norm_epsilon},
                    "attention": attention,
                    "feed_forward": {
                        "kind": "mlp", "hidden": config.n_inner or 4 * config.n_embd,
                        "activation": ACTIVATIONS[config.activation_function],
                    },
                },
            },
            "head": head or {"kind": "language_modeling", "tie_embeddings": config.tie_word_embeddings},
        }
    )  # fmt: skip


def rope_scaling(parameters: dict[str, object]) -> dict[str, object] | None:
    """A spec's scaling from the rope_parameters of a config."""
    renamed = {"rope_type": "kind", "original_max_position_embeddings": "original_context_length"}
    scaling = {renamed.get(key, key): value for key, value in parameters.items() if key != "rope_theta"}
    return None if scaling["kind"] == "default" else scaling


def llama_spec(config: transformers.LlamaConfig, head: dict[str, object] | None = None) -> Model:
    return Model.model_validate(
        {
            "name": "tiny-llama", "architecture": "decoder", "vocab_size": config.vocab_size,
            "d_model": config.hidden_size, "context_length": config.max_position_embeddings,
            "position": {
                "kind": "rope", "theta": config.rope_parameters["rope_theta"],
                "scaling": rope_scaling(config.rope_parameters),
            },
            "decoder": {
                "layers": config.num_hidden_layers,
                "block": {
                    "kind": "pre_norm",
                    "norm": {"kind": "rms_norm", "eps": config.rms_norm_eps},
                    "attention": {
                        "kind": "grouped_query", "heads": config.num_attention_heads,
                        "kv_heads": config.num_key_value_heads, "head_dim": config.head_dim,
                        "bias": config.attention_bias,
                    },
                    "feed_forward": {
                        "kind": "gated", "hidden": config.intermediate_size,
                        "activation": ACTIVATIONS[config.hidden_act], "bias": config.mlp_bias,
                    },
                },
            },
            "head": head or {"kind": "language_modeling", "tie_embeddings": config.tie_word_embeddings},
        }
    )  # fmt: skip


def assert_gradients(model: nn.Module, expected: Mapping[str, Tensor]) -> None:
    """Assert that parameters have the gradients of the reference, at the scale of the largest value of each."""
    for name, theirs in expected.items():
        ours, scale = model.get_parameter(name).grad, float(theirs.abs().max())
        message = f"{name}: {{}}".format
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5 * scale, msg=message)
