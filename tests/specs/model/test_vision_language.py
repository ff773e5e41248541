"""Rules of vision-language models: images among the tokens of a decoder."""

from __future__ import annotations

import pytest

from specs.base.errors import SpecError
from specs.forms.canonical import canonical
from specs.forms.resolved import resolved
from specs.language.load import load
from specs.model.model import Model

PRESET, PACKED, DEEP = "llava-1.5-7b", "qwen2-vl-2b", "qwen3-vl-2b"
RESAMPLED, BLOCK = "idefics2-8b", "connector.block"
RESAMPLER = (
    "connector={kind: resampler, token: 1, projection: {kind: mlp, hidden: 8, activation: relu}, queries: 4, layers: 1, "
    "block: {norm: {kind: rms_norm}, attention: {kind: multi_head, heads: 4}, "
    "feed_forward: {kind: mlp, hidden: 8, activation: relu}}}"
)
BRANCH = (
    "{feed_forward: {kind: mlp, hidden: 8, activation: relu}, norm: {kind: none}, output_norm: {kind: none}}"
)
PACKED_IMAGES = "embedding={kind: packed_patches, patch_size: 14}"


@pytest.mark.parametrize(
    ("preset", "changes", "message"),
    [
        (PRESET, ["connector=null"], "connector: is required by architecture: vision-language"),
        (PRESET, ["image=null"], "image: is required by architecture: vision-language"),
        ("gpt2", ["connector={kind: linear, token: 1}"], "connector: does not belong to architecture: decoder"),
        (PRESET, ["connector.token=32064"], "connector.token: must be below vocab_size, which is 32064"),
        (PRESET, ["connector.shuffle=5"], "connector.shuffle: must divide the number of patches in a row, which is 24"),
        (PRESET, ["connector.pool=5"], "connector.pool: must divide the number of patches in a row, which is 24"),
        (PRESET, ["connector.pool=4", "connector.shuffle=4"], "connector.shuffle: must divide the number of patches in a row after pooling, which is 6"),
        (PRESET, ["connector.pool=2", "connector.class_token=true"], "connector.pool: joins patches, and a class token is none"),
        (PRESET, ["image.bidirectional=image"], "image.bidirectional: belongs to the decoder of a vision-language model"),
        ("gpt2", ["decoder.bidirectional=image"], "decoder.bidirectional: belongs to the decoder of a vision-language model"),
        (PRESET, ["connector.shuffle=2", "connector.class_token=true"], "connector.shuffle: joins patches, and a class token is none"),
        (
            PRESET,
            ["embedding.norm={kind: layer_norm}", "embedding.width=8"],
            "embedding.norm: must not be combined with a width or a projection in a vision-language model",
        ),
        (PRESET, ["position={kind: learned}"], "position.kind: must act inside attention in a vision-language model"),
        (PRESET, ["decoder.position={kind: sinusoidal}"], "decoder.position.kind: must act inside attention"),
        (PRESET, ["image.embedding={kind: spectrogram, mel_bins: 80}", "image.context_length=50"], "image.embedding.kind: must be patches"),
        (PRESET, ["image.head={kind: pooled}"], "image.head: belongs to a stack of a dual encoder"),
        (PACKED, ["connector.pool=2"], "connector.pool: must be 1 for images of any size"),
        (PACKED, ["connector.shuffle=1", "connector.class_token=true"], "connector.class_token: must be false for images of any size"),
        (PACKED, ["image.position={kind: rope}"], "image.position.kind: must tell rows from columns in images of any size, or be none"),
        (PACKED, ["image.position.coordinates=centred"], "image.position.coordinates: must be index for images of any size"),
        (PACKED, ["image.position={kind: relative_bias_2d}"], "image.position.kind: requires images of one size"),
        (PACKED, ["image.block.attention.window=8"], "image.block.attention.window: counts tokens of a sequence, and patches have rows and columns"),
        (PRESET, ["image.block.attention.patch_window=8"], "image.block.attention.patch_window: requires an embedding of packed_patches"),
        (PACKED, ["position.sections.pairs=[16, 24, 23]"], "position.sections.pairs: must have the sum 64, half the rotated dimensions"),
        (PACKED, ["decoder.layers=[{repeat: 2}, {use: plain}]", "decoder.blocks.plain.attention.position={kind: none, query_scaling: {beta: 0.1, length: 8}}"],
         "position.sections: must not be set beside query_scaling of some layers"),
        (PACKED, ["position.query_scaling={beta: 0.1, length: 8}"], "position.query_scaling: must not be set where pairs rotate by axis"),
        (PACKED, ["position.scaling={kind: dynamic_ntk, factor: 2.0, original_context_length: 64}"], "position.scaling.kind: must not depend on the length of an input"),
        (DEEP, ["connector.deepstack.layers=[11, 5]"], "connector.deepstack.layers: must be layers of the images in order, from 0 to 23"),
        (DEEP, ["connector.deepstack.layers=[24]"], "connector.deepstack.layers: must be layers of the images in order, from 0 to 23"),
        (DEEP, ["decoder.layers=2"], "connector.deepstack.layers: must be at most 2, the layers of the decoder"),
        (PRESET, ["connector.deepstack={layers: [0]}"], "connector.deepstack: requires images of any size"),
        (PRESET, ["image.position={kind: interpolated, side: 4}"], "image.position.kind: requires images of any size"),
        ("gpt2", ["position={kind: interpolated, side: 4}"], "position.kind: requires an embedding of patches"),
        (PRESET, ["position.sections={pairs: [16, 24, 24]}"], "position.sections: belong to the decoder of a vision-language model with packed_patches"),
        ("qwen2-0.5b", ["position.sections={pairs: [8, 12, 12]}"], "position.sections: belong to the decoder of a vision-language model with packed_patches"),
        ("vit-base-16", ["position={kind: rope, sections: {pairs: [8, 12, 12]}}"], "position.sections: belong to a decoder, among whose tokens images are"),
        ("vit-base-16", [PACKED_IMAGES], "embedding.kind: belongs to the images of a vision-language model"),
        (PACKED, [RESAMPLER], "connector.kind: must keep the vectors of images apart where these have any size"),
        (RESAMPLED, ["connector.queries=0"], "connector.queries: must be greater than or equal to 1"),
        (RESAMPLED, ["connector.token=32003"], "connector.token: must be below vocab_size, which is 32003"),
        (RESAMPLED, ["connector.shuffle=3"], "connector.shuffle: must divide the number of patches in a row, which is 70"),
        (
            RESAMPLED,
            [f"connector.projection={{kind: side_by_side, branches: {{a: {BRANCH}, b: {BRANCH}}}, output_norm: {{kind: none}}}}"],
            "connector.projection.kind: must be mlp or gated, which also map from one width to another",
        ),
        (RESAMPLED, [f"{BLOCK}.attention.kv_heads=3"], f"{BLOCK}.attention.kv_heads: must divide heads, which is 16"),
        (RESAMPLED, [f"{BLOCK}.attention.window=8"], f"{BLOCK}.attention.window: must be null for trained queries, which attend to all vectors"),
        (RESAMPLED, [f"{BLOCK}.attention.position={{kind: rope}}"], f"{BLOCK}.attention.position: must be null for trained queries"),
        (RESAMPLED, [f"{BLOCK}.attention.reuses_keys_values=true"], f"{BLOCK}.attention.reuses_keys_values: must be false for trained queries"),
        (
            RESAMPLED,
            [f"{BLOCK}.attention={{kind: latent, heads: 4, head_dim: 8, rope_dim: 4, value_dim: 8, kv_rank: 8}}"],
            f"{BLOCK}.attention.kind: must have heads of equal width",
        ),
        (RESAMPLED, [f"{BLOCK}.norm={{kind: rms_norm, weight: false, unit_offset: true}}"], f"{BLOCK}.norm.unit_offset: must be false"),
        (PRESET, ["architecture=decoder"], "image: does not belong to architecture: decoder"),
    ],
)  # fmt: skip
def test_violated_rules_name_the_place(preset, changes, message):
    with pytest.raises(SpecError, match=message.replace(".", "[.]")):
        load(preset, changes)


@pytest.mark.parametrize(
    ("change", "vectors"),
    [
        ("connector.bias=false", 576),
        ("connector.shuffle=4", 36),
        ("connector.pool=3", 64),
        ("connector.class_token=true", 577),
        (RESAMPLER, 4),
    ],
)
def test_an_image_takes_as_many_placeholders_as_vectors_remain(change, vectors):
    assert load(PRESET, [change]).vectors_per_image == vectors


def test_widths_and_stacks_are_those_of_both():
    spec = load(PRESET)
    assert [name for name, _ in spec.stacks()] == ["image", "decoder"]
    assert spec.widths_text == "1,024 + 4,096"
    assert spec.decodes
    assert spec.first_stack is spec.last_stack is spec.decoder
    assert spec.reader_of("pixel_values") is spec.image
    assert Model.model_validate(resolved(spec)) == spec


def test_the_hidden_width_of_a_connector_is_that_of_the_tokens_unless_stated():
    assert canonical(load(PRESET)) == canonical(load(PRESET, ["connector.hidden=4096"]))
    assert canonical(load(PRESET)) != canonical(load(PRESET, ["connector.hidden=64"]))


def test_kinds_of_attention_of_a_resampler_that_mean_the_same_are_equal():
    grouped = [f"{BLOCK}.attention.kv_heads=16"]
    whole = [f"{BLOCK}.attention={{kind: multi_head, heads: 16, head_dim: 96, bias: false}}"]
    assert canonical(load(RESAMPLED, grouped)) == canonical(load(RESAMPLED, whole))
    assert canonical(load(RESAMPLED, grouped)) != canonical(load(RESAMPLED))
