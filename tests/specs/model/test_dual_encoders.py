"""Rules of dual encoders: stacks of texts and of images that meet in a head."""

from __future__ import annotations

import pytest

from specs.base.errors import SpecError
from specs.language.load import load

PRESET = "clip-vit-b32"
IMAGE = "layers: 1, block: {kind: pre_norm, norm: {kind: layer_norm}, attention: {kind: multi_head, heads: 2}, feed_forward: {kind: mlp, hidden: 8, activation: gelu}}"


@pytest.mark.parametrize(
    ("preset", "changes", "message"),
    [
        (PRESET, ["head={kind: none}"], "head.kind: must be contrastive or detection in a dual encoder"),
        ("bert-base", ["head={kind: contrastive}"], "head.kind: belongs to a dual encoder"),
        (PRESET, ["text.head=null"], "text.head: must be of kind pooled in a dual encoder"),
        (PRESET, ["image.head={kind: none}"], "image.head: must be of kind pooled in a dual encoder"),
        (PRESET, ["image.head.projection=100"], "image.head.projection: must give vectors as wide as those of the texts"),
        (PRESET, ["text.head.pooling={token: 50000}"], "text.head.pooling.token: must be below vocab_size, which is 49408"),
        (PRESET, ["head={kind: detection}"], "image.head: must be of kind patch_boxes where the head is detection"),
        ("owlvit-base-32", ["head={kind: contrastive}"], "image.head: must be of kind pooled in a dual encoder"),
        ("owlvit-base-32", ["text.head={kind: patch_boxes, norm: {kind: none}, projection: 512}"], "text.head: must be of kind pooled in a dual encoder"),
        ("owlvit-base-32", ["image.head.projection=100"], "image.head.projection: must give vectors as wide as those of the texts"),
        ("vit-base-16", ["head={kind: detection}"], "head.kind: belongs to a dual encoder"),
        ("vit-base-16", ["head={kind: patch_boxes, norm: {kind: none}, projection: 8}"], "head.kind: belongs to the images of a dual encoder with the head detection"),
        ("bert-base", ["encoder.head={kind: pooled}"], "encoder.head: belongs to a stack of a dual encoder"),
        (PRESET, ["image.embedding={kind: tokens}"], "image.embedding.kind: must take images where text takes tokens"),
        (PRESET, ["image=null"], "image: is required by architecture: dual-encoder"),
        ("bert-base", ["image={" + IMAGE + "}"], "image: does not belong to architecture: encoder"),
    ],
)  # fmt: skip
def test_violated_rules_name_the_place(preset, changes, message):
    with pytest.raises(SpecError, match=message.replace(".", "[.]")):
        load(preset, changes)


def test_the_remedy_names_the_width_that_fits():
    with pytest.raises(SpecError, match=r"Use 512[.]"):
        load(PRESET, ["image.head.projection=100"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["image.head.pooling.attention.heads=5"], "image.head.pooling.attention"),
        (["image.head.pooling.attention={kind: latent, heads: 2, head_dim: 8, rope_dim: 4, value_dim: 8, kv_rank: 8}"],
         "image.head.pooling.attention.kind: must have heads of equal width"),
    ],
)  # fmt: skip
def test_pooling_by_attention_is_checked(changes, message):
    with pytest.raises(SpecError, match=message.replace(".", "[.]")):
        load("siglip-base-16", changes)


def test_widths_and_stacks_are_those_of_both():
    spec = load("clip-vit-b32")
    assert [name for name, _ in spec.stacks()] == ["text", "image"]
    assert spec.widths_text == "512 + 768"
    assert not spec.decodes
    assert spec.reader_of("pixel_values") is spec.image
