"""Checkpoints of GPTs as releases of their time wrote them: with buffers, with a head stored again, with or without a prefix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from specs.model.model import Model
from tests.thinned import one_in
from tests.zoo.checkpoints.test_checkpoints import drawn
from zoo.builder import assemble
from zoo.checkpoints.open_weights import open_weights
from zoo.checkpoints.write import stored_tensors
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config
from zoo.families.common.transforms import Grouped
from zoo.families.registry import family
from zoo.weights.materialize import materialize
from zoo.weights.names import SINGLE

SIZES = {"vocab_size": 11, "hidden_size": 12, "max_position_embeddings": 8}
HEADS = {"num_hidden_layers": 2, "num_attention_heads": 2}
OLD_SIZES = {"vocab_size": 11, "n_embd": 12, "n_layer": 2, "n_head": 2, "n_positions": 8}

CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "openai-gpt": (OLD_SIZES, ["h.0.attn.bias", "h.1.attn.bias"]),
    "gptj": ({**OLD_SIZES, "rotary_dim": 4}, ["h.0.attn.bias", "h.1.attn.masked_bias"]),
    "gpt_neo": (
        {**SIZES, "num_layers": 2, "num_heads": 2, "attention_types": [[["global", "local"], 1]]},
        ["h.0.attn.attention.bias", "h.1.attn.attention.masked_bias"],
    ),
    "gpt_neox": (
        {**SIZES, **HEADS, "intermediate_size": 7, "rotary_pct": 0.4},
        ["layers.0.attention.bias", "layers.0.attention.masked_bias", "layers.1.attention.rotary_emb.inv_freq"],
    ),
    "opt": ({**SIZES, **HEADS, "ffn_dim": 7, "word_embed_proj_dim": 5, "do_layer_norm_before": False}, []),
    "bloom": ({"vocab_size": 11, "n_embed": 12, "n_layer": 2, "num_attention_heads": 2}, []),
    "falcon": ({**SIZES, **HEADS, "multi_query": False}, []),
    "phi": (
        {**SIZES, **HEADS, "intermediate_size": 7, "partial_rotary_factor": 0.4},
        ["layers.0.self_attn.rotary_emb.inv_freq"],
    ),
    "stablelm": (
        {**SIZES, **HEADS, "num_key_value_heads": 1, "intermediate_size": 7, "partial_rotary_factor": 0.4},
        ["layers.0.self_attn.rotary_emb.inv_freq"],
    ),
}  # fmt: skip
HEADS_STORED_AGAIN = {
    "openai-gpt": "tokens_embed.weight",
    "gpt_neo": "wte.weight",
    "opt": "decoder.embed_tokens.weight",
    "bloom": "word_embeddings.weight",
    "falcon": "word_embeddings.weight",
}


def spec_of(model_type: str) -> Model:
    config = Config({"model_type": model_type, **CASES[model_type][0]}, "config.json")
    return spec_of_config(config, name="tiny")


def save(tensors: dict[str, torch.Tensor], model_type: str, directory: Path) -> None:
    save_file(tensors, directory / SINGLE)
    (directory / "config.json").write_text(json.dumps({"model_type": model_type}))


@one_in(2)
@pytest.mark.parametrize("prefixed", [True, False])
@pytest.mark.parametrize("model_type", CASES)
def test_it_is_read(model_type: str, prefixed: bool, tmp_path: Path) -> None:
    spec, names = spec_of(model_type), family(model_type).tensors
    original = drawn(spec)
    tensors = dict(stored_tensors(original, spec, names))
    if model_type in HEADS_STORED_AGAIN:
        tensors["lm_head.weight"] = tensors[names.prefix + HEADS_STORED_AGAIN[model_type]].clone()
    for buffer in CASES[model_type][1]:
        tensors[names.prefix + buffer] = torch.ones(1, 1, 8, 8)
    if not prefixed:
        tensors = {name.removeprefix(names.prefix): tensor for name, tensor in tensors.items()}
    save(tensors, model_type, tmp_path)
    model = assemble(spec)
    source: Any = open_weights(str(tmp_path), model, spec)
    assert source.ignored == ()
    materialize(model, source)
    before = dict(original.named_parameters())
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name]), name


def test_the_head_of_gpt_neox_under_its_new_name(tmp_path: Path) -> None:
    spec, names = spec_of("gpt_neox"), family("gpt_neox").tensors
    tensors = dict(stored_tensors(drawn(spec), spec, names))
    tensors["lm_head.weight"] = tensors.pop("embed_out.weight")
    save(tensors, "gpt_neox", tmp_path)
    source: Any = open_weights(str(tmp_path), assemble(spec), spec)
    assert source.ignored == ()


def test_what_is_put_together_is_put_together_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, names = spec_of("bloom"), family("bloom").tensors
    tensors = {name: tensor.half() for name, tensor in stored_tensors(drawn(spec), spec, names)}
    save(tensors, "bloom", tmp_path)
    source = open_weights(str(tmp_path), assemble(spec), spec)
    calls = []
    split = Grouped.split

    def counted(self: Grouped, stored: torch.Tensor, shapes: Any) -> Any:
        if not stored.is_meta:
            calls.append(1)
        return split(self, stored, shapes)

    monkeypatch.setattr(Grouped, "split", counted)
    monkeypatch.setattr("zoo.checkpoints.source.PIECE", 24)
    pieces = list(source.pieces("decoder.blocks.1.attention.key.weight"))
    fused = tensors["transformer.h.1.self_attention.query_key_value.weight"].view(2, 3, 6, 12)
    assert torch.equal(torch.cat(pieces), fused[:, 1].float().flatten())
    assert (len(pieces), len(calls)) == (6, 1)
