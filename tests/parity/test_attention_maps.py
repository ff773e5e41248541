"""The weights of attentions against those that transformers gives with ``output_attentions``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import (
    AlbertConfig,
    AlbertModel,
    BertConfig,
    BertModel,
    BloomConfig,
    BloomForCausalLM,
    CLIPConfig,
    CLIPModel,
    DeepseekV3Config,
    DeepseekV3ForCausalLM,
    Dinov2WithRegistersConfig,
    Dinov2WithRegistersModel,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    GptOssConfig,
    GptOssForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    ModernBertConfig,
    ModernBertModel,
    PreTrainedModel,
    SiglipConfig,
    SiglipModel,
    T5Config,
    T5ForConditionalGeneration,
    ViTConfig,
    ViTModel,
    Wav2Vec2Config,
    Wav2Vec2ForCTC,
    WhisperConfig,
    WhisperForConditionalGeneration,
)

from exporters.exported.model_source import model_source
from tests.parity.minilm import load_minilm
from tests.parity.reference import build, load
from tests.thinned import one_in
from zoo.attention_maps.attend import Attended, attend
from zoo.attention_maps.choice import choose
from zoo.attention_maps.maps import LayerMap
from zoo.attention_maps.reading import AttentionInput
from zoo.attention_maps.recording import AttentionCall, Recording
from zoo.configs.importing import import_spec

IDS = [3, 11, 7, 30, 2, 19, 5, 23, 4]
COMMON = dict(
    vocab_size=50, hidden_size=32, intermediate_size=40, num_hidden_layers=3, num_attention_heads=4,
    max_position_embeddings=64, bos_token_id=0, eos_token_id=1, pad_token_id=0,
)  # fmt: skip
GROUPED = {**COMMON, "num_key_value_heads": 2}

REFERENCES = {
    "bert": (BertModel, BertConfig(**COMMON)),
    "shared layers": (AlbertModel, AlbertConfig(**COMMON, embedding_size=16)),
    "local and global": (ModernBertModel, ModernBertConfig(**COMMON, local_attention=4, global_attn_every_n_layers=2)),
    "gpt2": (GPT2LMHeadModel, GPT2Config(vocab_size=50, n_embd=32, n_layer=3, n_head=4, n_positions=64)),
    "grouped heads": (LlamaForCausalLM, LlamaConfig(**GROUPED)),
    "softcap and windows": (
        Gemma2ForCausalLM,
        Gemma2Config(**GROUPED, head_dim=8, sliding_window=4, attn_logit_softcapping=1.5),
    ),
    "sinks": (
        GptOssForCausalLM,
        GptOssConfig(
            **GROUPED, head_dim=8, sliding_window=4, num_local_experts=4, num_experts_per_tok=2,
            rope_parameters={"rope_type": "default", "rope_theta": 100.0},
        ),
    ),
    "alibi": (BloomForCausalLM, BloomConfig(vocab_size=50, hidden_size=32, n_layer=3, n_head=4)),
    "latent": (
        DeepseekV3ForCausalLM,
        DeepseekV3Config(
            **COMMON, num_key_value_heads=4, moe_intermediate_size=9, n_routed_experts=8, n_group=4, topk_group=2,
            num_experts_per_tok=3, kv_lora_rank=10, q_lora_rank=14, qk_rope_head_dim=6, qk_nope_head_dim=8,
            v_head_dim=7, first_k_dense_replace=3,
        ),
    ),
}  # fmt: skip


def read(reference: PreTrainedModel, place: Path, reading: AttentionInput, new_tokens: int = 0) -> Attended:
    """Our model and its inputs, from the checkpoint that the reference writes."""
    reference.save_pretrained(place)
    spec = import_spec(place)
    return Attended.of(list(attend(load(spec, place), reading, choose(spec), new_tokens)))


def assert_alike(ours: list[LayerMap], theirs: tuple[torch.Tensor, ...]) -> None:
    """All weights of all layers, without sinks, which the reference leaves out."""
    assert [each.layer for each in ours] == list(range(len(theirs)))
    for each, weights in zip(ours, theirs, strict=True):
        own = each.weights[..., :-1] if each.sink else each.weights
        torch.testing.assert_close(own, weights[0], atol=1e-5, rtol=0)
        assert weights.max() - weights.min() > 0.05


@one_in(3)
@pytest.mark.parametrize("name", REFERENCES)
def test_weights(name: str, tmp_path: Path) -> None:
    reference = build(*REFERENCES[name], seed=1)
    attended = read(reference, tmp_path, AttentionInput(IDS))
    with torch.no_grad():
        theirs = reference(torch.tensor([IDS]), output_attentions=True).attentions
    (ours,) = attended.maps.values()
    assert_alike(ours, theirs)


@pytest.mark.parametrize("name", ["gpt2", "grouped heads", "softcap and windows", "sinks", "alibi", "latent"])
def test_weights_through_the_cache(name: str, tmp_path: Path) -> None:
    """The continuation is the reference's, and rows of single steps equal rows of its full pass."""
    reference = build(*REFERENCES[name], seed=1)
    attended = read(reference, tmp_path, AttentionInput(IDS[:3]), new_tokens=5)
    ids = attended.ids["decoder"]
    with torch.no_grad():
        outputs = reference(torch.tensor([ids]), output_attentions=True)
    assert len(ids) == 7
    assert outputs.logits[0, 2:].argmax(-1).tolist() == attended.written == [*ids[3:], attended.written[-1]]
    assert_alike(attended.maps["decoder"], outputs.attentions)


@pytest.mark.parametrize("new_tokens", [0, 4])
def test_encoder_decoder(new_tokens: int, tmp_path: Path) -> None:
    config = T5Config(
        vocab_size=50, d_model=24, d_kv=6, d_ff=33, num_layers=3, num_decoder_layers=2, num_heads=4
    )
    reference = build(T5ForConditionalGeneration, config, seed=2)
    attended = read(reference, tmp_path, AttentionInput(IDS, target=[0, 8, 20]), new_tokens)
    ids = attended.ids["decoder"]
    assert len(ids) == 3 + max(0, new_tokens - 1)
    with torch.no_grad():
        outputs = reference(
            torch.tensor([IDS]), decoder_input_ids=torch.tensor([ids]), output_attentions=True
        )
    assert_alike(attended.maps["encoder"], outputs.encoder_attentions)
    assert_alike(attended.maps["decoder"], outputs.decoder_attentions)
    assert_alike(attended.maps["cross"], outputs.cross_attentions)


VISION = dict(
    hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4, image_size=14, patch_size=4,
)  # fmt: skip
IMAGES = {
    "class token": (ViTModel, ViTConfig(**VISION), 0),
    "registers": (Dinov2WithRegistersModel, Dinov2WithRegistersConfig(**VISION, mlp_ratio=2, num_register_tokens=3), 3),
}  # fmt: skip


def pixels(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(2).normal(0, 1, (1, *shape)).astype(np.float32)


@pytest.mark.parametrize("name", IMAGES)
def test_images(name: str, tmp_path: Path) -> None:
    model_class, config, registers = IMAGES[name]
    reference = build(model_class, config, seed=1)
    values = pixels(3, 14, 14)
    attended = read(reference, tmp_path, AttentionInput(values=values))
    with torch.no_grad():
        theirs = reference(torch.from_numpy(values), output_attentions=True).attentions
    assert_alike(attended.maps["encoder"], theirs)
    assert len(attended.names["encoder"]) == 1 + registers + 9


TEXT = {**{name: VISION[name] for name in list(VISION)[:4]}, "vocab_size": 50, "max_position_embeddings": 16}
DUAL = {
    "class token": (CLIPModel, CLIPConfig(text_config={**TEXT, "eos_token_id": 4}, vision_config=VISION, projection_dim=9)),
    "pooled by attention": (SiglipModel, SiglipConfig(text_config=TEXT, vision_config=VISION)),
}  # fmt: skip


@pytest.mark.parametrize("name", DUAL)
def test_dual_encoders(name: str, tmp_path: Path) -> None:
    reference = build(*DUAL[name], seed=1)
    values = pixels(3, 14, 14)
    attended = read(reference, tmp_path, AttentionInput(IDS, values=values))
    assert list(attended.maps) == ["text", "image"]
    with torch.no_grad():
        text = reference.text_model(torch.tensor([IDS]), output_attentions=True)
        image = reference.vision_model(torch.from_numpy(values), output_attentions=True)
    assert_alike(attended.maps["text"], text.attentions)
    assert_alike(attended.maps["image"], image.attentions)


def test_spectrograms(tmp_path: Path) -> None:
    config = WhisperConfig(
        vocab_size=50, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, num_mel_bins=8,
        decoder_attention_heads=4, encoder_ffn_dim=40, decoder_ffn_dim=40, max_source_positions=12,
        max_target_positions=16, pad_token_id=0, bos_token_id=0, eos_token_id=1, decoder_start_token_id=0,
        suppress_tokens=None, begin_suppress_tokens=None,
    )  # fmt: skip
    reference = build(WhisperForConditionalGeneration, config, seed=2)
    values = pixels(8, 24)
    attended = read(reference, tmp_path, AttentionInput(target=[0, 8, 20], values=values), 3)
    ids = attended.ids["decoder"]
    assert len(ids) == 5
    with torch.no_grad():
        outputs = reference(
            torch.from_numpy(values), decoder_input_ids=torch.tensor([ids]), output_attentions=True
        )
    assert_alike(attended.maps["encoder"], outputs.encoder_attentions)
    assert_alike(attended.maps["decoder"], outputs.decoder_attentions)
    assert_alike(attended.maps["cross"], outputs.cross_attentions)


def test_samples(tmp_path: Path) -> None:
    config = Wav2Vec2Config(
        vocab_size=12, hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
        conv_dim=(8, 8), conv_kernel=(10, 3), conv_stride=(5, 2), num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2,
    )  # fmt: skip
    reference = build(Wav2Vec2ForCTC, config, seed=3)
    values = pixels(200)
    attended = read(reference, tmp_path, AttentionInput(values=values))
    with torch.no_grad():
        theirs = reference(torch.from_numpy(values), output_attentions=True).attentions
    assert_alike(attended.maps["encoder"], theirs)
    assert len(attended.names["encoder"]) == 19


def test_minilm_with_padding() -> None:
    """The real MiniLM on sentences of different lengths, padded to the longest."""
    minilm = load_minilm()
    model, _ = model_source(str(minilm.directory)).model()
    calls: list[AttentionCall] = []
    with torch.no_grad(), Recording(model, calls.append):
        model(minilm.input_ids, minilm.attention_mask, minilm.token_type_ids)
    with torch.no_grad():
        theirs = minilm.reference(
            minilm.input_ids, minilm.attention_mask, minilm.token_type_ids, output_attentions=True
        ).attentions
    real = minilm.attention_mask.bool()
    both = (real[:, :, None] & real[:, None]).unsqueeze(1)
    assert len(calls) == len(theirs) == 6
    for layer, (call, weights) in enumerate(zip(calls, theirs, strict=True)):
        assert (call.stack, call.layer) == ("encoder", layer)
        assert ((call.weights - weights) * both).abs().max() < 1e-5
        assert (call.weights * ~real[:, None, None]).max() == 0
        assert torch.equal(call.seen, real[:, None].expand_as(call.seen))
