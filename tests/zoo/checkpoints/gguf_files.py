"""GGUF files of models of transformers, as llama.cpp's converter writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from torch import Tensor, nn

Kind = gguf.GGMLQuantizationType


def interleaved(weight: Tensor, heads: int) -> Tensor:
    """Rows of each head with first and second half alternating: the converter's order of queries and keys."""
    halves = weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:])
    return halves.swapaxes(1, 2).reshape(weight.shape)


def write(
    model: nn.Module,
    path: Path,
    kind: Kind = Kind.F32,
    *,
    architecture: str = "llama",
    drop: tuple[str, ...] = (),
    extra: dict[str, Tensor] | None = None,
    metadata: dict[str, Any] | None = None,
) -> dict[str, Tensor]:
    """Write a causal language model, its matrices in a kind and its vectors in F32; the values that the file holds,
    by the names of transformers.

    ``metadata`` are fields of the architecture to add or, with None, to leave out.
    """
    config: Any = model.config
    rotation = config.rope_parameters.get("full_attention", config.rope_parameters)
    (known,) = (key for key, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    names = gguf.get_tensor_name_map(known, config.num_hidden_layers)
    writer = gguf.GGUFWriter(path, architecture)
    fields = {
        "context_length": config.max_position_embeddings, "embedding_length": config.hidden_size,
        "block_count": config.num_hidden_layers, "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.num_attention_heads, "attention.head_count_kv": config.num_key_value_heads,
        "attention.layer_norm_rms_epsilon": float(config.rms_norm_eps),
        "attention.key_length": config.head_dim, "attention.value_length": config.head_dim,
        "rope.dimension_count": config.head_dim, "rope.freq_base": float(rotation["rope_theta"]),
        "vocab_size": config.vocab_size,
    }  # fmt: skip
    for key, value in (fields | (metadata or {})).items():
        if value is not None:
            add: dict[type, Any] = {
                int: writer.add_uint32,
                float: writer.add_float32,
                str: writer.add_string,
                list: writer.add_array,
            }
            add[type(value)](f"{architecture}.{key}", value)
    writer.add_uint32("tokenizer.ggml.eos_token_id", 2)
    state = dict(model.named_parameters())  # tied ones once
    held = {}
    for name, tensor in state.items():
        value = tensor.detach()
        raised = architecture.startswith("gemma") and name.endswith("norm.weight")
        module, _, leaf = name.rpartition(".")
        heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}.get(
            module.rpartition(".")[2]
        )
        turned = heads if architecture == "llama" else None
        given = value + 1 if raised else value if turned is None else interleaved(value, turned)
        stored = given.contiguous().numpy()
        used = kind if stored.ndim > 1 else Kind.F32
        stored = gguf.quants.quantize(stored, used)
        values = gguf.quants.dequantize(stored, used)
        back = torch.from_numpy(np.array(values)).reshape(value.shape)
        held[name] = back - 1 if raised else back if turned is None else interleaved_back(back, turned)
        if name not in drop:
            writer.add_tensor(f"{names.get_name(module)}.{leaf}", stored, raw_dtype=used)
    for name, added in (extra or {}).items():
        writer.add_tensor(name, added.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return held


def interleaved_back(weight: Tensor, heads: int) -> Tensor:
    """Undo :func:`interleaved`."""
    order = interleaved(torch.arange(weight.shape[0]), heads)
    return weight[order.argsort()]
