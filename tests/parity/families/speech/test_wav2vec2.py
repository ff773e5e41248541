"""wav2vec 2.0, HuBERT, WavLM and data2vec for audio against transformers."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import pytest
import torch
import transformers as hf
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from transformers.models.data2vec import modeling_data2vec_audio
from transformers.models.wavlm.modeling_wavlm import WavLMAttention

from specs.language.load import load as load_spec
from tests.parity.families.draws import FEW_LAYERS, flags, lists
from tests.parity.families.family import RightPaddedTests
from tests.parity.reference import assert_gradients, build, load
from zoo.components.relative_bias import t5_buckets
from zoo.configs.exporting import NoFamilyError, write_config
from zoo.configs.importing import import_spec

CONFIGS = {
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


def classifiers(*classes: type) -> list[tuple[type, dict[str, Any]]]:
    """Other classes, with the sum of all layers if there are classes of audio."""
    sums = ["Classification" in each.__name__ for each in classes]
    return [
        (each, {"classifier_proj_size": 9, "use_weighted_layer_sum": sums_up})
        for each, sums_up in zip(classes, sums, strict=True)
    ]


class TestWav2Vec2(RightPaddedTests):
    model_class = hf.Wav2Vec2ForCTC
    configs = CONFIGS
    others = classifiers(
        hf.Wav2Vec2Model, hf.Wav2Vec2ForAudioFrameClassification, hf.Wav2Vec2ForSequenceClassification
    )
    of_others = ("base", "large")
    refusals: ClassVar[Any] = (
        ("add_adapter", True, "must be false", "adapters"),
        ("adapter_attn_dim", 16, "must be", "MMS"),
        ("conv_kernel", [10], "must have as many numbers as conv_dim, which has 3"),
        ("conv_dim", [5, "a"], "must be a list of whole numbers"),
        (
            {"architectures": ["Wav2Vec2ForSequenceClassification"], "use_weighted_layer_sum": True, "do_stable_layer_norm": True},
            "must be false with do_stable_layer_norm", "sum different vectors",
        ),
        ({"architectures": ["Wav2Vec2ForPreTraining"]}, "must not name", "Wav2Vec2For"),
    )  # fmt: skip

    def check(self, model_class, config, directory, **options):
        """Sums of layers are refused with do_stable_layer_norm."""
        config.use_weighted_layer_sum = config.use_weighted_layer_sum and not config.do_stable_layer_norm
        return super().check(model_class, config, directory, **options)

    def drawn_class(self, data):
        return self.model_class

    @staticmethod
    def draw(data):
        heads, depth = data.draw(st.integers(1, 4), "heads"), data.draw(st.integers(1, 3), "convolutions")
        groups, kernels = (
            data.draw(st.integers(1, 3), "groups"),
            data.draw(lists(st.integers(1, 9), depth), "kernels"),
        )
        return dict(
            hidden_size=groups * heads * data.draw(st.integers(1, 6), "width"), num_hidden_layers=FEW_LAYERS,
            num_attention_heads=heads, intermediate_size=st.integers(1, 40), vocab_size=st.integers(1, 20),
            conv_dim=lists(st.integers(2, 9), depth), conv_kernel=kernels,
            conv_stride=[data.draw(st.integers(1, kernel), "stride") for kernel in kernels],
            feat_extract_norm=st.sampled_from(["group", "layer"]), num_conv_pos_embeddings=st.integers(1, 12),
            num_conv_pos_embedding_groups=groups, hidden_act=st.sampled_from(["gelu", "relu", "gelu_new"]),
            layer_norm_eps=st.sampled_from([1e-5, 1e-2]), **flags("conv_bias", "do_stable_layer_norm"),
        )  # fmt: skip


class TestHubert(TestWav2Vec2):
    model_class = hf.HubertForCTC
    configs = {**CONFIGS, "large": {**CONFIGS["large"], "feat_proj_layer_norm": False}}
    others = classifiers(hf.HubertModel, hf.HubertForSequenceClassification)
    refusals = (("conv_pos_batch_norm", True, "must be false", "batch norm"),)

    @staticmethod
    def draw(data):
        return TestWav2Vec2.draw(data) | flags("feat_proj_layer_norm")


class TestUniSpeech(TestWav2Vec2):
    model_class = hf.UniSpeechForCTC
    others = classifiers(hf.UniSpeechModel, hf.UniSpeechForSequenceClassification)
    refusals = ()
    draw = RightPaddedTests.draw


class TestUniSpeechSat(TestWav2Vec2):
    model_class = hf.UniSpeechSatForCTC
    others = classifiers(
        hf.UniSpeechSatModel,
        hf.UniSpeechSatForAudioFrameClassification,
        hf.UniSpeechSatForSequenceClassification,
    )
    refusals = ()
    draw = RightPaddedTests.draw


class TestWavLM(TestWav2Vec2):
    model_class = hf.WavLMForCTC
    configs = {**CONFIGS, "base": {**CONFIGS["base"], "num_buckets": 8, "max_bucket_distance": 5}}
    others = classifiers(
        hf.WavLMModel, hf.WavLMForAudioFrameClassification, hf.WavLMForSequenceClassification
    )
    refusals = (({"architectures": ["WavLMForXVector"]}, "must not name", "WavLMFor"),)

    @staticmethod
    def draw(data):
        return TestWav2Vec2.draw(data) | {"num_buckets": st.sampled_from([4, 8, 320])}


def _without_padding(self, hidden_states):
    """Positions of a padded row as of the row alone: the reference zeroes padding before the first convolution alone."""
    real = (hidden_states != 0).any(-1)[:, None]
    hidden_states = hidden_states.transpose(1, 2)
    for layer in self.layers:
        hidden_states = layer(hidden_states * real)
    return hidden_states.transpose(1, 2)


@pytest.fixture(scope="module", autouse=True)
def _positions_of_rows_alone():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            modeling_data2vec_audio.Data2VecAudioPositionalConvEmbedding, "forward", _without_padding
        )
        yield


class TestData2VecAudio(TestWav2Vec2):
    model_class = hf.Data2VecAudioForCTC
    configs = {
        name: {
            **{field: value for field, value in values.items() if field not in ("feat_extract_norm", "do_stable_layer_norm")},
            "num_conv_pos_embeddings": 3,
            "conv_pos_kernel_size": kernel,
        }
        for (name, values), kernel in zip(CONFIGS.items(), (5, 4, 1), strict=True)
    }  # fmt: skip
    others = classifiers(
        hf.Data2VecAudioModel,
        hf.Data2VecAudioForAudioFrameClassification,
        hf.Data2VecAudioForSequenceClassification,
    )
    refusals = (("add_adapter", True, "must be false", "adapters"),)

    def check(self, model_class, config, directory, **options):
        return RightPaddedTests.check(self, model_class, config, directory, **options)

    @staticmethod
    def draw(data):
        fields = TestWav2Vec2.draw(data)
        del fields["feat_extract_norm"], fields["do_stable_layer_norm"]
        depth = len(fields["conv_kernel"])
        return fields | dict(
            num_conv_pos_embeddings=st.integers(1, 4), conv_pos_kernel_size=st.integers(1, 9),
            conv_dim=lists(st.integers(5, 9), depth),  # norms of two channels keep signs alone
        )  # fmt: skip


def test_kernels_are_read_under_their_old_names_and_written_back_exactly(tmp_path):
    reference = build(hf.Wav2Vec2ForCTC, TestWav2Vec2.configured("large"), seed=3)
    reference.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    new = {"parametrizations.weight.original0": "weight_g", "parametrizations.weight.original1": "weight_v"}
    renamed = {
        re.sub("|".join(new), lambda match: new[match[0]], name): tensor for name, tensor in tensors.items()
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
    reference = build(hf.WavLMForCTC, TestWavLM.configured(name), seed=4)
    reference.save_pretrained(tmp_path)
    ours = load(import_spec(tmp_path), tmp_path)
    samples = torch.randn(2, 300, generator=torch.Generator().manual_seed(5))
    for model in (reference, ours):
        model.zero_grad()
        model(samples).logits.square().sum().backward()
    encoder = reference.wavlm.encoder
    first, second = (layer.attention for layer in encoder.layers[:2])
    expected = {
        "embedding.layers.0.convolution.weight": reference.wavlm.feature_extractor.conv_layers[
            0
        ].conv.weight.grad,
        "encoder.blocks.1.attention.bias_gate.projection.weight": second.gru_rel_pos_linear.weight.grad,
        "embedding.position.convolution.magnitude": encoder.pos_conv_embed.conv.parametrizations.weight.original0.grad,
        "encoder.blocks.0.attention.position.table.weight": first.rel_attn_embed.weight.grad,
    }
    assert_gradients(ours, expected)


@pytest.mark.parametrize(("buckets", "distance"), [(320, 800), (8, 30), (16, 20)])
def test_buckets_are_those_of_wavlm(buckets, distance):
    attention = WavLMAttention(16, 2, num_buckets=buckets, max_distance=distance)
    relative = torch.arange(-distance - 5, distance + 6)
    ours = torch.tensor(t5_buckets(buckets, distance, bidirectional=True))
    theirs = attention._relative_positions_bucket(relative)
    assert torch.equal(ours[relative.clamp(-distance, distance) + distance], theirs)


def test_a_norm_of_the_sum_belongs_to_blocks_that_do_not_begin_with_one():
    spec = load_spec("wav2vec2-xls-r-300m", ["embedding.norm={kind: layer_norm}", "expect={}"])
    with pytest.raises(NoFamilyError, match=r"embedding\.norm"):
        write_config(spec, "wav2vec2")
