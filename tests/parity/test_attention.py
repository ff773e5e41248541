"""Variants of attentions, norms, blocks and stacks, against the models that have them.

Names are mapped here part by part: what these tests prove are components, not checkpoints.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import save_file
from torch import Tensor, nn

from specs.model.model import Model
from tests.parity.reference import assert_close, build, load, positions, ragged, step_through
from zoo.builder import ZooModel

DECODER = {
    "model.embed_tokens": "embedding.token",
    "model.norm": "decoder.final_norm",
    "lm_head": "head.vocabulary",
    "model.layers.": "decoder.blocks.",
    "self_attn.q_proj": "attention.query",
    "self_attn.k_proj": "attention.key",
    "self_attn.v_proj": "attention.value",
    "self_attn.o_proj": "attention.output",
    "self_attn.q_norm": "attention.query_norm",
    "self_attn.k_norm": "attention.key_norm",
    "self_attn.sinks": "attention.sinks",
    "mlp.gate_proj": "feed_forward.gate",
    "mlp.up_proj": "feed_forward.up",
    "mlp.down_proj": "feed_forward.down",
}
PRE = {"input_layernorm": "attention_norm", "post_attention_layernorm": "feed_forward_norm"}
POST = {"post_attention_layernorm": "attention_norm", "post_feedforward_layernorm": "feed_forward_norm"}
AROUND = {
    "input_layernorm": "attention_norm",
    "post_attention_layernorm": "attention_output_norm",
    "pre_feedforward_layernorm": "feed_forward_norm",
    "post_feedforward_layernorm": "feed_forward_output_norm",
}
WIDTH = dict(
    vocab_size=53, hidden_size=24, intermediate_size=20, num_hidden_layers=4, num_attention_heads=4,
    max_position_embeddings=64, tie_word_embeddings=False, bos_token_id=0, eos_token_id=0, pad_token_id=None,
)  # fmt: skip
THETA = {"rope_type": "default", "rope_theta": 100.0}
ROPE = {"kind": "rope", "theta": 100.0}
RMS = {"kind": "rms_norm", "eps": 1e-6}
GEMMA_NORM = {**RMS, "unit_offset": True}
ALTERNATING = ["sliding_attention", "full_attention"] * 2
PATTERN = [{"pattern": [{"use": "local"}, {}], "repeat": 2}]


def around_zero(reference: nn.Module) -> nn.Module:
    """The weights of norms as Gemma stores them, not around 1."""
    with torch.no_grad():
        for parameter in reference.parameters():
            if parameter.dim() == 1:
                parameter.sub_(1)
    return reference


def renamed(name: str, *tables: dict[str, str]) -> str:
    for theirs, ours in (pair for table in tables for pair in table.items()):
        name = name.replace(theirs, ours)
    return name


def with_weights(spec: Model, tensors: dict[str, Tensor], directory: Path) -> ZooModel:
    save_file(
        {name: tensor.clone().contiguous() for name, tensor in tensors.items()}, directory / "own.safetensors"
    )
    return load(spec, directory)


def decoder_spec(block: dict[str, Any], local: dict[str, Any] | None = None, **changes: Any) -> Model:
    """A decoder of four layers like WIDTH, at times with other attention in every other layer."""
    activation = changes.pop("activation", "silu")
    attention = {"kind": "multi_head", "heads": 4, "bias": False, **block.pop("attention", {})}
    feed_forward = {"kind": "gated", "hidden": 20, "activation": activation, "bias": False}
    block = {"norm": RMS, "feed_forward": feed_forward, **block, "attention": attention}
    decoder: dict[str, Any] = {"layers": 4, "block": block}
    if local is not None:
        decoder |= {"layers": PATTERN, "blocks": {"local": {**block, "attention": {**attention, **local}}}}
    data = {"name": "tiny", "architecture": "decoder", "vocab_size": 53, "d_model": 24, "context_length": 64}
    data |= {"position": ROPE, "decoder": decoder}
    head = {"kind": "language_modeling", "tie_embeddings": False}
    return Model.model_validate({**data, "head": head, **changes})


def check_decoder(reference: nn.Module, model: ZooModel, length: int = 15) -> None:
    """Logits at once and step by step, padded on either side."""
    for side in ("right", "left"):
        ids, mask = ragged(3, length, 53, side, 4)
        with torch.no_grad():
            theirs = reference(ids, attention_mask=mask, position_ids=positions(mask)).logits
            assert_close(model(ids, mask).logits, theirs, mask)
            assert_close(step_through(model, ids, mask, prefill=length // 2), theirs, mask)


def check_llama_like(reference: nn.Module, spec: Model, norms: dict[str, str], directory: Path) -> None:
    tensors = {renamed(name, DECODER, norms): tensor for name, tensor in reference.state_dict().items()}
    check_decoder(reference, with_weights(spec, tensors, directory))


def test_the_window_of_mistral(tmp_path: Path) -> None:
    config = transformers.MistralConfig(
        **WIDTH, num_key_value_heads=2, sliding_window=5, rope_parameters=THETA
    )
    reference = build(transformers.MistralForCausalLM, config, 1)
    attention = {"kind": "grouped_query", "kv_heads": 2, "window": 5}
    check_llama_like(reference, decoder_spec({"kind": "pre_norm", "attention": attention}), PRE, tmp_path)


def test_caps_windows_and_norms_of_gemma_2(tmp_path: Path) -> None:
    config = transformers.Gemma2Config(
        **{**WIDTH, "tie_word_embeddings": True}, num_key_value_heads=2, head_dim=10, query_pre_attn_scalar=7,
        sliding_window=4, layer_types=ALTERNATING, attn_logit_softcapping=3.0, final_logit_softcapping=None,
        rope_parameters=THETA,
    )  # fmt: skip
    reference = around_zero(build(transformers.Gemma2ForCausalLM, config, 2))
    attention = {"kind": "grouped_query", "kv_heads": 2, "head_dim": 10, "scale": 7**-0.5, "softcap": 3.0}
    spec = decoder_spec(
        {"kind": "sandwich", "norm": GEMMA_NORM, "attention": attention},
        {"window": 4},
        activation="gelu_tanh",
        embedding={"scale": "sqrt_d_model"},
        head={"kind": "language_modeling"},
    )
    check_llama_like(reference, spec, AROUND, tmp_path)


def test_query_key_norm_and_two_bases_of_gemma_3(tmp_path: Path) -> None:
    config = transformers.Gemma3TextConfig(
        **{**WIDTH, "tie_word_embeddings": True}, num_key_value_heads=1, head_dim=8, query_pre_attn_scalar=8,
        sliding_window=6, layer_types=ALTERNATING,
        rope_parameters={
            "full_attention": {"rope_type": "linear", "rope_theta": 5000.0, "factor": 4.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 30.0},
        },
    )  # fmt: skip
    reference = around_zero(build(transformers.Gemma3ForCausalLM, config, 3))
    attention = {"kind": "multi_query", "head_dim": 8, "qk_norm": {"norm": GEMMA_NORM}}
    spec = decoder_spec(
        {"kind": "sandwich", "norm": GEMMA_NORM, "attention": attention},
        {"window": 6, "position": {"kind": "rope", "theta": 30.0}},
        position={"kind": "rope", "theta": 5000.0, "scaling": {"kind": "linear", "factor": 4.0}},
        activation="gelu_tanh",
        embedding={"scale": "sqrt_d_model"},
        head={"kind": "language_modeling"},
    )
    check_llama_like(reference, spec, AROUND, tmp_path)


def test_query_key_norm_of_qwen_3(tmp_path: Path) -> None:
    config = transformers.Qwen3Config(**WIDTH, num_key_value_heads=2, head_dim=8, rope_parameters=THETA)
    reference = build(transformers.Qwen3ForCausalLM, config, 4)
    attention = {"kind": "grouped_query", "kv_heads": 2, "head_dim": 8, "qk_norm": {"norm": RMS}}
    check_llama_like(reference, decoder_spec({"kind": "pre_norm", "attention": attention}), PRE, tmp_path)


def test_layers_without_positions_of_smollm_3(tmp_path: Path) -> None:
    config = transformers.SmolLM3Config(
        **WIDTH, num_key_value_heads=4, no_rope_layers=[0, 1, 0, 1], rope_parameters=THETA
    )
    reference = build(transformers.SmolLM3ForCausalLM, config, 5)
    spec = decoder_spec({"kind": "pre_norm"}, {"position": {"kind": "none"}})
    check_llama_like(reference, spec, PRE, tmp_path)


def test_the_clip_and_bare_norms_of_olmo(tmp_path: Path) -> None:
    config = transformers.OlmoConfig(**WIDTH, clip_qkv=0.4, rope_parameters=THETA)
    reference = build(transformers.OlmoForCausalLM, config, 6)
    norm = {"kind": "layer_norm", "weight": False, "bias": False}
    spec = decoder_spec({"kind": "pre_norm", "norm": norm, "attention": {"clip": 0.4}})
    check_llama_like(reference, spec, PRE, tmp_path)


def test_norms_of_branches_and_of_all_heads_of_olmo_2(tmp_path: Path) -> None:
    config = transformers.Olmo2Config(
        **WIDTH, num_key_value_heads=2, rms_norm_eps=1e-6, rope_parameters=THETA
    )
    reference = build(transformers.Olmo2ForCausalLM, config, 7)
    attention = {"kind": "grouped_query", "kv_heads": 2, "qk_norm": {"norm": RMS, "over": "width"}}
    spec = decoder_spec({"kind": "reordered_norm", "attention": attention})
    check_llama_like(reference, spec, POST, tmp_path)


def test_norms_of_each_head_of_stablelm(tmp_path: Path) -> None:
    rope = {**THETA, "partial_rotary_factor": 0.5}
    config = transformers.StableLmConfig(
        **{**WIDTH, "hidden_size": 48}, num_key_value_heads=2, qk_layernorm=True, rope_parameters=rope
    )
    reference = build(transformers.StableLmForCausalLM, config, 8)
    norm = {"kind": "layer_norm", "bias": False}
    attention = {
        "kind": "grouped_query",
        "kv_heads": 2,
        "qk_norm": {"norm": norm, "over": "each_head"},
    }
    spec = decoder_spec(
        {"kind": "pre_norm", "norm": {"kind": "layer_norm"}, "attention": attention},
        d_model=48,
        position={**ROPE, "dimensions": 6},
    )
    tensors = reference.state_dict()
    for layer in range(4):
        for letter, name, heads in (("q", "query", 4), ("k", "key", 2)):
            stored = f"model.layers.{layer}.self_attn.{letter}_layernorm.norms"
            rows = [tensors.pop(f"{stored}.{head}.weight") for head in range(heads)]
            tensors[f"decoder.blocks.{layer}.attention.{name}_norm.weight"] = torch.stack(rows)
    tensors = {renamed(name, DECODER, PRE): tensor for name, tensor in tensors.items()}
    check_decoder(reference, with_weights(spec, tensors, tmp_path))


class Nothing(nn.Module):
    """In place of the experts of GPT-OSS, which are not what is tested."""

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        return torch.zeros_like(x), None


def test_sinks_and_windows_of_gpt_oss(tmp_path: Path) -> None:
    config = transformers.GptOssConfig(
        **WIDTH, num_key_value_heads=2, head_dim=6, sliding_window=4, layer_types=ALTERNATING,
        num_local_experts=2, num_experts_per_tok=1, rope_parameters=THETA, attention_bias=True, rms_norm_eps=1e-6,
    )  # fmt: skip
    reference = build(transformers.GptOssForCausalLM, config, 9)
    for layer in reference.model.layers:
        layer.mlp = Nothing()
    attention = {"kind": "grouped_query", "kv_heads": 2, "head_dim": 6, "bias": True, "sinks": True}
    spec = decoder_spec({"kind": "pre_norm", "attention": attention}, {"window": 4})
    tensors = {renamed(name, DECODER, PRE): tensor for name, tensor in reference.state_dict().items()}
    for layer in range(4):
        for name, shape in (("gate", (20, 24)), ("up", (20, 24)), ("down", (24, 20))):
            tensors[f"decoder.blocks.{layer}.feed_forward.{name}.weight"] = torch.zeros(shape)
    check_decoder(reference, with_weights(spec, tensors, tmp_path))


FALCON = {
    "transformer.word_embeddings": "embedding.token",
    "transformer.ln_f": "decoder.final_norm",
    "transformer.h.": "decoder.blocks.",
    "lm_head": "head.vocabulary",
    "self_attention.dense": "attention.output",
    "mlp.dense_h_to_4h": "feed_forward.up",
    "mlp.dense_4h_to_h": "feed_forward.down",
}


@pytest.mark.parametrize("heads", [4, 12])
def test_the_rounded_alibi_of_falcon(heads: int, tmp_path: Path) -> None:
    config = transformers.FalconConfig(
        vocab_size=53, hidden_size=4 * heads, num_hidden_layers=2, num_attention_heads=heads, alibi=True, bias=True,
        multi_query=False, parallel_attn=False, new_decoder_architecture=False, ffn_hidden_size=30,
        tie_word_embeddings=False, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    reference = build(transformers.FalconForCausalLM, config, 10)
    config._attn_implementation = "sdpa"  # the eager code adds alibi twice
    width = 4  # a scale of 1 / 2, which rounds nothing more
    norm = {"kind": "layer_norm", "eps": config.layer_norm_epsilon}
    block = {
        "kind": "pre_norm",
        "norm": norm,
        "attention": {"kind": "multi_head", "heads": heads},
        "feed_forward": {"kind": "mlp", "hidden": 30, "activation": "gelu"},
    }
    position = {"kind": "alibi", "precision": "bfloat16", "scale": width**-0.5}
    spec = decoder_spec({}, d_model=4 * heads, position=position, decoder={"layers": 2, "block": block})
    tensors = {}
    for name, tensor in reference.state_dict().items():
        if "query_key_value" in name:
            parts = tensor.unflatten(0, (heads, 3, width))
            for index, projection in enumerate(("query", "key", "value")):
                ours = name.replace("self_attention.query_key_value", f"attention.{projection}")
                tensors[renamed(ours, FALCON)] = parts[:, index].flatten(0, 1)
        else:
            tensors[renamed(name, FALCON, PRE)] = tensor
    model = with_weights(spec, tensors, tmp_path)
    for side in ("right", "left"):
        ids, mask = ragged(3, 290, 53, side, 4)
        with torch.no_grad():
            theirs = reference(ids, attention_mask=mask).logits
            assert_close(model(ids, mask).logits, theirs, mask)
            assert_close(step_through(model, ids, mask, prefill=286), theirs, mask)


ALBERT = {
    "embeddings.word_embeddings": "embedding.token",
    "embeddings.position_embeddings": "embedding.position.table",
    "embeddings.token_type_embeddings": "embedding.token_type",
    "embeddings.LayerNorm": "embedding.norm",
    "encoder.embedding_hidden_mapping_in": "embedding.projection",
    "full_layer_layer_norm": "feed_forward_norm",
    "attention.LayerNorm": "attention_norm",
    "attention.dense": "attention.output",
    "ffn_output": "feed_forward.down",
    "ffn.": "feed_forward.up.",
    "pooler.": "head.dense.",
}


@pytest.mark.parametrize("inner", [1, 2])
def test_shared_layers_of_albert(inner: int, tmp_path: Path) -> None:
    config = transformers.AlbertConfig(
        vocab_size=53, embedding_size=10, hidden_size=24, num_hidden_layers=6 // inner, num_attention_heads=4,
        intermediate_size=30, max_position_embeddings=40, inner_group_num=inner,
    )  # fmt: skip
    reference = build(transformers.AlbertModel, config, 11)
    norm = {"kind": "layer_norm", "eps": 1e-12}
    block = {
        "kind": "post_norm",
        "norm": norm,
        "attention": {"kind": "multi_head", "heads": 4},
        "feed_forward": {"kind": "mlp", "hidden": 30, "activation": "gelu_tanh"},
    }
    layers = [{"repeat": 6, "shared": True}, {"pattern": [{"repeat": 2}], "repeat": 3, "shared": True}]
    data = {"name": "tiny", "architecture": "encoder", "vocab_size": 53, "d_model": 24, "context_length": 40}
    data |= {
        "position": {"kind": "learned"},
        "embedding": {"width": 10, "token_types": 2, "norm": norm},
        "encoder": {"layers": [layers[inner - 1]], "block": block},
        "head": {"kind": "pooler"},
    }
    tensors = {}
    for name, tensor in reference.state_dict().items():
        for layer in range(inner):
            stored = f"encoder.albert_layer_groups.0.albert_layers.{layer}"
            name = name.replace(stored, f"encoder.blocks.{layer}")
        tensors[renamed(name, ALBERT)] = tensor
    model = with_weights(Model.model_validate(data), tensors, tmp_path)
    assert sum(p.numel() for p in model.parameters()) == sum(p.numel() for p in reference.parameters())
    blocks: Any = model.get_submodule("encoder.blocks")
    assert len(blocks) == 6
    ids, mask = ragged(3, 11, 53, "right", 4)
    types = ids % 2
    with torch.no_grad():
        theirs = reference(ids, attention_mask=mask, token_type_ids=types)
        ours = model(ids, mask, types)
        assert_close(ours.last_hidden_state, theirs.last_hidden_state, mask)
        assert_close(ours.pooler_output, theirs.pooler_output)


CLIP = {
    "text_model.": "",
    "embeddings.token_embedding": "embedding.token",
    "embeddings.position_embedding": "embedding.position.table",
    "encoder.layers.": "encoder.blocks.",
    "final_layer_norm": "encoder.final_norm",
    "layer_norm1": "attention_norm",
    "layer_norm2": "feed_forward_norm",
    "self_attn.q_proj": "attention.query",
    "self_attn.k_proj": "attention.key",
    "self_attn.v_proj": "attention.value",
    "self_attn.out_proj": "attention.output",
    "mlp.fc1": "feed_forward.up",
    "mlp.fc2": "feed_forward.down",
}


def test_the_causal_encoder_of_clip(tmp_path: Path) -> None:
    config = transformers.CLIPTextConfig(
        vocab_size=53, hidden_size=24, num_hidden_layers=2, num_attention_heads=4, intermediate_size=30,
        max_position_embeddings=20, eos_token_id=52, bos_token_id=0, pad_token_id=1,
    )  # fmt: skip
    reference = build(transformers.CLIPTextModel, config, 12)
    block = {
        "kind": "pre_norm",
        "norm": {"kind": "layer_norm"},
        "attention": {"kind": "multi_head", "heads": 4},
        "feed_forward": {"kind": "mlp", "hidden": 30, "activation": "quick_gelu"},
    }
    data = {"name": "tiny", "architecture": "encoder", "vocab_size": 53, "d_model": 24, "context_length": 20}
    data |= {"position": {"kind": "learned"}, "encoder": {"layers": 2, "block": block, "causal": True}}
    state = {name: tensor for name, tensor in reference.state_dict().items() if "position_ids" not in name}
    tensors = {renamed(name, CLIP): tensor for name, tensor in state.items()}
    model = with_weights(Model.model_validate(data), tensors, tmp_path)
    ids, mask = ragged(3, 11, 53, "right", 4)
    with torch.no_grad():
        theirs = reference(ids, attention_mask=mask).last_hidden_state
        assert_close(model(ids, mask).last_hidden_state, theirs, mask)


MODERNBERT = {
    "embeddings.tok_embeddings": "embedding.token",
    "embeddings.norm": "embedding.norm",
    "layers.": "encoder.blocks.",
    "final_norm": "encoder.final_norm",
    "attn_norm": "attention_norm",
    "mlp_norm": "feed_forward_norm",
    "attn.Wo": "attention.output",
    "mlp.Wo": "feed_forward.down",
}


def test_the_two_sided_window_of_modernbert(tmp_path: Path) -> None:
    config = transformers.ModernBertConfig(
        vocab_size=53, hidden_size=24, intermediate_size=30, num_hidden_layers=4, num_attention_heads=4,
        local_attention=6, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        cls_token_id=1, sep_token_id=2,
        rope_parameters={
            "full_attention": {"rope_type": "default", "rope_theta": 500.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 20.0},
        },
    )  # fmt: skip
    reference = build(transformers.ModernBertModel, config, 13)
    norm = {"kind": "layer_norm", "bias": False}
    attention = {"kind": "multi_head", "heads": 4, "bias": False}
    block = {
        "kind": "pre_norm",
        "norm": norm,
        "attention": attention,
        "feed_forward": {"kind": "gated", "hidden": 30, "activation": "gelu", "bias": False},
    }
    local = {**attention, "window": 6, "position": {"kind": "rope", "theta": 20.0}}
    data = {"name": "tiny", "architecture": "encoder", "vocab_size": 53, "d_model": 24, "context_length": 64}
    data |= {
        "position": {"kind": "rope", "theta": 500.0},
        "embedding": {"norm": norm},
        "encoder": {
            "layers": [{"use": "first"}, {"use": "local", "repeat": 2}, {}],
            "block": block,
            "blocks": {
                "first": {**block, "attention_norm": {"kind": "none"}},
                "local": {**block, "attention": local},
            },
        },
    }
    tensors = {}
    for name, tensor in reference.state_dict().items():
        if "Wqkv" in name:
            for projection, part in zip(("query", "key", "value"), tensor.chunk(3), strict=True):
                tensors[renamed(name.replace("attn.Wqkv", f"attention.{projection}"), MODERNBERT)] = part
        elif "Wi" in name:
            for projection, part in zip(("gate", "up"), tensor.chunk(2), strict=True):
                tensors[renamed(name.replace("mlp.Wi", f"feed_forward.{projection}"), MODERNBERT)] = part
        else:
            tensors[renamed(name, MODERNBERT)] = tensor
    model = with_weights(Model.model_validate(data), tensors, tmp_path)
    ids, mask = ragged(3, 17, 53, "right", 4)
    with torch.no_grad():
        theirs = reference(ids, attention_mask=mask).last_hidden_state
        assert_close(model(ids, mask).last_hidden_state, theirs, mask)
