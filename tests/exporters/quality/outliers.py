"""Small checkpoints with outliers, as trained models have them: a few channels of norms are tens of times the others.

The matrices that read a norm have those columns shrunk, in part: the channels matter more than the others, and less than
they are large.  Llama, GPT-2, T5 and BERT show this (Dettmers et al., 2022; Sun et al., 2024).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from tests.exporters.quality import checkpoints

FACTORS = (60.0, 35.0, 20.0)
"""How many times the others the outlying channels of each norm are."""

SHRUNK = 0.8
"""By which power of its factor a column is shrunk that reads an outlying channel."""


def gpt2(directory: Path) -> Path:
    config = transformers.GPT2Config(
        vocab_size=checkpoints.VOCABULARY, n_positions=128, n_embd=64, n_layer=2, n_head=4, n_inner=96,
        bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    return _saved(transformers.GPT2LMHeadModel(config), directory, _gpt2_readers)


def t5(directory: Path) -> Path:
    config = transformers.T5Config(
        vocab_size=checkpoints.VOCABULARY, d_model=64, d_kv=16, d_ff=96, num_layers=2, num_heads=4, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, decoder_start_token_id=0,
    )  # fmt: skip
    return _saved(transformers.T5ForConditionalGeneration(config), directory, _t5_readers)


def bert(directory: Path) -> Path:
    config = transformers.BertConfig(
        vocab_size=checkpoints.VOCABULARY, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=4, max_position_embeddings=128,
    )  # fmt: skip
    return _saved(transformers.BertModel(config), directory, _bert_readers)


def mixtral(directory: Path) -> Path:
    config = transformers.MixtralConfig(
        vocab_size=checkpoints.VOCABULARY, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2,
        max_position_embeddings=128, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    return _saved(transformers.MixtralForCausalLM(config), directory, _mixtral_readers)


MODELS: dict[str, Callable[[Path], Path]] = {"gpt2": gpt2, "t5": t5, "bert": bert, "mixtral": mixtral}

Readers = Callable[[nn.Module], list[tuple[Tensor, list[Tensor]]]]
"""Gives the norms of a model, each with the matrices that read it, as N K."""


def _saved(model: transformers.PreTrainedModel, directory: Path, readers: Readers) -> Path:
    torch.manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.1)
        for norm, matrices in readers(model):
            channels = torch.randperm(len(norm))[: len(FACTORS)]
            factors = torch.tensor(FACTORS)
            norm[channels] *= factors
            for matrix in matrices:
                matrix[..., channels] *= factors**-SHRUNK
    model.eval().save_pretrained(directory)
    checkpoints.tokenizer().save(str(directory / "tokenizer.json"))
    return directory


def _gpt2_readers(model: Any) -> list[tuple[Tensor, list[Tensor]]]:
    return [
        pair
        for block in model.transformer.h
        for pair in (
            (block.ln_1.weight, [block.attn.c_attn.weight.T]),
            (block.ln_2.weight, [block.mlp.c_fc.weight.T]),
        )
    ]


def _t5_readers(model: Any) -> list[tuple[Tensor, list[Tensor]]]:
    found = []
    for stack in (model.encoder, model.decoder):
        for block in stack.block:
            for layer in block.layer:
                part = getattr(layer, "SelfAttention", None) or getattr(layer, "EncDecAttention", None)
                read = [layer.DenseReluDense.wi] if part is None else [part.q]
                read += [part.k, part.v] if hasattr(layer, "SelfAttention") else []
                found.append((layer.layer_norm.weight, [each.weight for each in read]))
    return found


def _bert_readers(model: Any) -> list[tuple[Tensor, list[Tensor]]]:
    layers = model.encoder.layer
    found = [(each.attention.output.LayerNorm.weight, [each.intermediate.dense.weight]) for each in layers]
    for before, after in zip(layers, [*layers][1:], strict=False):
        read = after.attention.self
        found.append(
            (before.output.LayerNorm.weight, [read.query.weight, read.key.weight, read.value.weight])
        )
    return found


def _mixtral_readers(model: Any) -> list[tuple[Tensor, list[Tensor]]]:
    found = []
    for layer in model.model.layers:
        read = layer.self_attn
        found.append(
            (layer.input_layernorm.weight, [read.q_proj.weight, read.k_proj.weight, read.v_proj.weight])
        )
        experts = layer.mlp.experts
        found.append((layer.post_attention_layernorm.weight, [layer.mlp.gate.weight, experts.gate_up_proj]))
    return found
