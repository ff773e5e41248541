"""wav2vec 2.0, HuBERT and WavLM against transformers."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from transformers import (
    HubertConfig,
    HubertForCTC,
    HubertForSequenceClassification,
    HubertModel,
    Wav2Vec2Config,
    Wav2Vec2ForAudioFrameClassification,
    Wav2Vec2ForCTC,
    Wav2Vec2ForSequenceClassification,
    Wav2Vec2Model,
    WavLMConfig,
    WavLMForAudioFrameClassification,
    WavLMForCTC,
    WavLMForSequenceClassification,
    WavLMModel,
)
from transformers.models.wavlm.modeling_wavlm import WavLMAttention

from specs.language.load import load as load_spec
from tests.parity.families.harness import check
from tests.parity.reference import build, load
from tests.thinned import one_in
from zoo.components.position import t5_buckets
from zoo.configs.exporting import NoFamilyError, write_config
from zoo.configs.importing import import_spec, spec_of_config
from zoo.families.common.config import Config, ConfigError

CONFIGS: dict[str, dict[str, Any]] = {
    "base": dict(
        hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=37, vocab_size=11,
        conv_dim=[6, 8, 10], conv_kernel=[10, 3, 2], conv_stride=[5, 2, 2],
        num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4,
    ),
    "large": dict(
        hidden_size=20, num_hidden_layers=3, num_attention_heads=5, intermediate_size=30, vocab_size=7,
        conv_dim=[5, 7], conv_kernel=[4, 3], conv_stride=[4, 2], conv_bias=True, feat_extract_norm="layer",
        do_stable_layer_norm=True, num_conv_pos_embeddings=5, num_conv_pos_embedding_groups=2, pad_token_id=6,
        hidden_act="gelu_new", layer_norm_eps=1e-3,
    ),
    "masked post norm": dict(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=12, vocab_size=5,
        conv_dim=[8], conv_kernel=[7], conv_stride=[3], feat_extract_norm="layer", feat_extract_activation="relu",
        num_conv_pos_embeddings=6, num_conv_pos_embedding_groups=1, hidden_dropout=0.0, mask_time_prob=0.0,
    ),
}  # fmt: skip
CLASSES: dict[str, tuple[type, type, dict[str, dict[str, Any]]]] = {
    "wav2vec2": (Wav2Vec2Config, Wav2Vec2ForCTC, {}),
    "hubert": (HubertConfig, HubertForCTC, {"large": {"feat_proj_layer_norm": False}}),
    "wavlm": (WavLMConfig, WavLMForCTC, {"base": {"num_buckets": 8, "max_bucket_distance": 5}}),
}


def config_of(kind: str, name: str) -> Any:
    config_class, _, more = CLASSES[kind]
    return config_class(**CONFIGS[name], **more.get(name, {}))


@one_in(3)
@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("kind", CLASSES)
def test_configuration(kind, name, tmp_path):
    check(CLASSES[kind][1], config_of(kind, name), tmp_path, sides=("right",))


@pytest.mark.slow
@pytest.mark.parametrize(
    "model_class",
    [
        Wav2Vec2Model, HubertModel, WavLMModel, Wav2Vec2ForAudioFrameClassification,
        WavLMForAudioFrameClassification, Wav2Vec2ForSequenceClassification, HubertForSequenceClassification,
        WavLMForSequenceClassification,
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["base", "large"])
def test_other_heads(model_class, name, tmp_path):
    config = config_of(model_class.config_class.model_type, name)
    config.classifier_proj_size = 9
    config.use_weighted_layer_sum = name == "base" and "Classification" in model_class.__name__
    check(model_class, config, tmp_path, sides=("right",))


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    kind = data.draw(st.sampled_from(list(CLASSES)), "kind")
    heads, depth = data.draw(st.integers(1, 4), "heads"), data.draw(st.integers(1, 3), "convolutions")
    groups = data.draw(st.integers(1, 3), "groups")
    kernels = data.draw(st.lists(st.integers(1, 9), min_size=depth, max_size=depth), "kernels")
    values: dict[str, Any] = dict(
        hidden_size=groups * heads * data.draw(st.integers(1, 6), "width"),
        num_hidden_layers=data.draw(st.integers(1, 3), "layers"),
        num_attention_heads=heads,
        intermediate_size=data.draw(st.integers(1, 40), "hidden"),
        vocab_size=data.draw(st.integers(1, 20), "vocab_size"),
        conv_dim=data.draw(st.lists(st.integers(2, 9), min_size=depth, max_size=depth), "channels"),
        conv_kernel=kernels,
        conv_stride=[data.draw(st.integers(1, kernel), "stride") for kernel in kernels],
        conv_bias=data.draw(st.booleans(), "bias"),
        feat_extract_norm=data.draw(st.sampled_from(["group", "layer"]), "norm"),
        do_stable_layer_norm=data.draw(st.booleans(), "stable"),
        num_conv_pos_embeddings=data.draw(st.integers(1, 12), "kernel"),
        num_conv_pos_embedding_groups=groups,
        hidden_act=data.draw(st.sampled_from(["gelu", "relu", "gelu_new"]), "activation"),
        layer_norm_eps=data.draw(st.sampled_from([1e-5, 1e-2]), "eps"),
    )
    if kind == "hubert":
        values["feat_proj_layer_norm"] = data.draw(st.booleans(), "feat_proj_layer_norm")
    if kind == "wavlm":
        values["num_buckets"] = data.draw(st.sampled_from([4, 8, 320]), "buckets")
    config_class, model_class, _ = CLASSES[kind]
    directory, seed = tmp_path_factory.mktemp(kind), data.draw(st.integers(0, 99), "seed")
    options: dict[str, Any] = dict(seed=seed, sides=("right",), onnx=seed % 5 == 0, fuzzed=True)
    check(model_class, config_class(**values), directory, **options)


def test_kernels_are_read_under_their_old_names_and_written_back_exactly(tmp_path):
    reference = build(Wav2Vec2ForCTC, config_of("wav2vec2", "large"), seed=3)
    reference.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    new = {"parametrizations.weight.original0": "weight_g", "parametrizations.weight.original1": "weight_v"}
    renamed = {
        re.sub("|".join(new), lambda found: new[found[0]], name): tensor for name, tensor in tensors.items()
    }
    assert renamed.keys() - tensors.keys()
    save_file(renamed, tmp_path / "model.safetensors")
    ours = load(import_spec(tmp_path), tmp_path)
    convolution: Any = ours.get_submodule("embedding.position.convolution")
    kernel = reference.wav2vec2.encoder.pos_conv_embed.conv
    assert torch.equal(convolution.magnitude, kernel.parametrizations.weight.original0)
    assert torch.equal(convolution.direction, kernel.parametrizations.weight.original1)


@pytest.mark.parametrize("name", ["base", "large"])
def test_gradients_are_those_of_the_reference(name, tmp_path):
    reference = build(WavLMForCTC, config_of("wavlm", name), seed=4)
    reference.save_pretrained(tmp_path)
    ours = load(import_spec(tmp_path), tmp_path)
    samples = torch.randn(2, 300, generator=torch.Generator().manual_seed(5))
    for model in (reference, ours):
        model.zero_grad()
        outputs = model(samples)
        outputs.logits.square().sum().backward()
    stem = reference.wavlm.feature_extractor.conv_layers[0].conv.weight
    gate = reference.wavlm.encoder.layers[1].attention.gru_rel_pos_linear.weight
    magnitude = reference.wavlm.encoder.pos_conv_embed.conv.parametrizations.weight.original0
    pairs = {
        "embedding.layers.0.convolution.weight": stem,
        "encoder.blocks.1.attention.bias_gate.projection.weight": gate,
        "embedding.position.convolution.magnitude": magnitude,
        "encoder.blocks.0.attention.position.table.weight": reference.wavlm.encoder.layers[
            0
        ].attention.rel_attn_embed.weight,
    }
    for parameter, theirs in pairs.items():
        found, wanted = ours.get_parameter(parameter).grad, theirs.grad
        assert found is not None
        assert float((found - wanted).abs().max()) <= 1e-4 * max(1.0, float(wanted.abs().max())), parameter


@pytest.mark.parametrize(("buckets", "distance"), [(320, 800), (8, 30), (16, 20)])
def test_buckets_are_those_of_wavlm(buckets, distance):
    attention = WavLMAttention(16, 2, num_buckets=buckets, max_distance=distance)
    relative = torch.arange(-distance - 5, distance + 6)
    ours = torch.tensor(t5_buckets(buckets, distance, bidirectional=True))
    theirs = attention._relative_positions_bucket(relative)
    assert torch.equal(ours[relative.clamp(-distance, distance) + distance], theirs)


REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    ("wav2vec2", {"add_adapter": True}, "add_adapter: must be false", "adapters"),
    ("wav2vec2", {"adapter_attn_dim": 16}, "adapter_attn_dim: must be", "MMS"),
    ("hubert", {"conv_pos_batch_norm": True}, "conv_pos_batch_norm: must be false", "batch norm"),
    ("wav2vec2", {"conv_kernel": [10]}, "conv_kernel: must have as many numbers as conv_dim, which has 7", ""),
    ("wav2vec2", {"conv_dim": [5, "a"]}, "conv_dim: must be a list of whole numbers", ""),
    ("wav2vec2", {"architectures": ["Wav2Vec2ForSequenceClassification"], "use_weighted_layer_sum": True,
     "do_stable_layer_norm": True}, "must be false with do_stable_layer_norm", "sum different vectors"),
    ("wav2vec2", {"architectures": ["Wav2Vec2ForPreTraining"]}, "must not name", "Wav2Vec2For"),
    ("wavlm", {"architectures": ["WavLMForXVector"]}, "must not name", "WavLMFor"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "change", "rule", "remedy"), REFUSED, ids=[str(case[1]) for case in REFUSED]
)
def test_unsupported_values_and_classes_are_refused(kind, change, rule, remedy):
    config = Config({"model_type": kind, **change}, "config.json")
    with pytest.raises(ConfigError, match=rule) as caught:
        spec_of_config(config, name=kind, strict=True)
    assert remedy in str(caught.value)


def test_a_norm_of_the_sum_belongs_to_blocks_that_do_not_begin_with_one():
    spec = load_spec("wav2vec2-xls-r-300m", ["embedding.norm={kind: layer_norm}", "expect={}"])
    with pytest.raises(NoFamilyError, match=r"embedding\.norm"):
        write_config(spec, "wav2vec2")
