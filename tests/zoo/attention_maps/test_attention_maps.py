"""The weights of attentions: what they are, how they are chosen, and how spread out they are."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor, nn

from specs.base.errors import UserError
from specs.model.model import Model
from tests.strategies import Data, model_data
from tests.zoo.tiny import BLOCK, bert, clip, gpt2, llava, moonshine, t5, trocr, vit, wav2vec2, whisper
from zoo import functional
from zoo.attention_maps.attend import Attended, attend
from zoo.attention_maps.choice import AttentionChoice, Reader, choose
from zoo.attention_maps.maps import LayerMap
from zoo.attention_maps.patches import patch_images, patch_maps
from zoo.attention_maps.pictures import grids
from zoo.attention_maps.reading import AttentionInput
from zoo.attention_maps.recording import AttentionCall, Recording
from zoo.builder import ZooModel, assemble
from zoo.checks.probe import ProbeWeights
from zoo.components.attention import merge_heads
from zoo.pictures.heat_map import heat_maps
from zoo.pictures.style import svg
from zoo.weights.materialize import materialize

relaxed = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def filled(spec: Model) -> ZooModel:
    """A model in float64 with weights under which attention differs from token to token."""
    model = assemble(spec, torch.float64)
    materialize(model, ProbeWeights(model, spec))
    return model


def attended(
    spec: Model, reading: AttentionInput, new_tokens: int = 0, choice: AttentionChoice | None = None
) -> Attended:
    return Attended.of(list(attend(filled(spec), reading, choice or choose(spec), new_tokens)))


# ---------------------------------------------------------------------------------------------------- the weights


@relaxed
@given(
    seed=st.integers(0, 99), groups=st.sampled_from([1, 2, 4]), keys=st.integers(1, 6), queries=st.integers(1, 4),
    softcap=st.sampled_from([None, 0.7]), sinks=st.booleans(), biased=st.sampled_from(["no", "all heads", "each head"]),
)  # fmt: skip
def test_recorded_weights_times_values_equal_the_attention_output(
    seed: int, groups: int, keys: int, queries: int, softcap: float | None, sinks: bool, biased: str
) -> None:
    torch.manual_seed(seed)
    double: dict[str, Any] = {"dtype": torch.float64}
    query, key = torch.randn(2, 4, queries, 3, **double), torch.randn(2, groups, keys, 3, **double)
    value = torch.randn(2, groups, keys, 5, **double)
    bias = torch.randn(2, 1 if biased == "all heads" else 4, queries, keys, **double)
    bias[torch.rand(2, 1, queries, keys).expand_as(bias) < 0.4] = functional.forbidden(torch.float64)
    given: dict[str, Any] = {
        "scale": 0.8,
        "softcap": softcap,
        "sinks": torch.randn(4, **double) if sinks else None,
    }
    wanted = functional.attention(query, key, value, None if biased == "no" else bias, **given)
    weights = functional.attention_weights(query, key, None if biased == "no" else bias, **given)
    assert weights.shape == (2, 4, queries, keys + sinks)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4, queries, **double))
    mixed = weights[..., :keys] @ value.repeat_interleave(4 // groups, 1)
    torch.testing.assert_close(mixed, wanted)


def test_a_sink_takes_all_where_every_key_is_forbidden() -> None:
    query = key = torch.ones(1, 1, 2, 4)
    bias = torch.full((1, 1, 2, 2), functional.forbidden(torch.float32))
    weights = functional.attention_weights(query, key, bias, scale=1.0, sinks=torch.zeros(1))
    assert weights.tolist() == [[[[0, 0, 1], [0, 0, 1]]]]


def check_maps(spec: Model, found: Attended) -> None:
    """Every layer with attention has a map, in which the weights of each query sum to 1 over visible keys."""
    for stack, maps in found.maps.items():
        layers = (spec.decoder if stack == "cross" else getattr(spec, stack)).layer_blocks()
        own = [layer for layer, block in enumerate(layers) if stack == "cross" or block.attention is not None]
        assert [each.layer for each in maps] == own * (len(maps) // len(own))
        for each in maps:
            assert each.stack == stack
            torch.testing.assert_close(each.weights.sum(-1), torch.ones(each.weights.shape[:2]).double())
            assert not each.weights.masked_select(~each.seen).any()
            assert all(-1e-9 <= value <= each.uniform_entropy + 1e-9 for value in each.entropy)


def values_of(spec: Model, reader: Reader) -> NDArray[np.float32]:
    """Random values of one input of a stack."""
    stack = getattr(spec, reader)
    embedding = spec.embedding_of(stack)
    shape = embedding.input_shape(7 if embedding.any_length else spec.context_length_of(stack))
    return np.random.default_rng(1).normal(0, 1, (1, *shape)).astype(np.float32)


def check_images_and_audio(spec: Model) -> None:
    """Each vector of an input has a name, a row and a column."""
    target = [0, 1][: spec.context_length_of(spec.last_stack) or 2] if spec.decoder else []
    found = attended(
        spec, AttentionInput(target=target, values=values_of(spec, "encoder"), column_seconds=0.01)
    )
    check_maps(spec, found)
    names = found.names["encoder"]
    assert len(set(names)) == len(names)
    assert found.ids == ({"decoder": target} if spec.decoder else {})
    for stack, maps in found.maps.items():
        keys = len(target) if stack == "decoder" else len(names)
        assert all(each.weights.shape[-1] == keys + each.sink for each in maps)


@pytest.mark.slow
@settings(relaxed, max_examples=15)
@given(model_data(), st.integers(1, 6))
def test_every_variant_gives_weights_only_to_visible_keys(data: Data, length: int) -> None:
    spec = Model.model_validate(data)
    encoder = spec.encoder.layer_blocks() if spec.encoder else ()
    if any(getattr(block.attention, "block_summaries", None) is not None for block in encoder):
        with pytest.raises(UserError, match="attends to sums of blocks of tokens"):
            choose(spec)
        return
    if not spec.embedding_of(spec.first_stack).takes_tokens:
        check_images_and_audio(spec)
        return
    lengths = [spec.context_length_of(stack) or length for _, stack in spec.stacks()]
    ids = [(3 * place) % (spec.vocab_size or 1) for place in range(min([length, *lengths]))]
    goes_on = spec.head.kind == "language_modeling" and spec.decoder is not None
    split = len(ids) // 2 if goes_on and len(ids) > 1 else len(ids)
    reading = AttentionInput(ids, target=ids[:split]) if spec.encoder else AttentionInput(ids[:split])
    model, more = filled(spec), len(ids) - split + 1 if split < len(ids) else 0
    found = Attended.of(list(attend(model, reading, choose(spec), more)))
    check_maps(spec, found)
    if split < len(ids):
        whole = found.ids["decoder"]
        reading = AttentionInput(ids, target=whole) if spec.encoder else AttentionInput(whole)
        again = Attended.of(list(attend(model, reading, choose(spec))))
        assert len(whole) == len(ids)
        for stack, maps in again.maps.items():
            for once, stepwise in zip(maps, found.maps[stack], strict=True):
                torch.testing.assert_close(stepwise.weights, once.weights)
                assert torch.equal(stepwise.seen, once.seen)


@pytest.mark.parametrize("make", [vit, wav2vec2, whisper, moonshine, trocr])
def test_images_and_audio(make: Any) -> None:
    check_images_and_audio(make())


def test_each_stack_of_a_dual_encoder() -> None:
    spec = clip()
    both = AttentionInput([1, 2, 9], values=values_of(spec, "image"))
    found = attended(spec, both)
    check_maps(spec, found)
    assert (found.ids, found.names) == (
        {"text": [1, 2, 9]},
        {"image": ["[CLS]", "r0c0", "r0c1", "r1c0", "r1c1"]},
    )
    assert [each.weights.shape for each in found.maps["text"]] == [(2, 3, 3)] * 2
    assert not found.maps["text"][0].seen[0, 1]  # causal
    alone = attended(spec, AttentionInput(values=both.values), choice=choose(spec, ["image"]))
    assert list(alone.maps) == list(alone.names) == ["image"]
    assert torch.equal(alone.maps["image"][1].weights, found.maps["image"][1].weights)


def test_images_among_the_tokens_of_a_decoder() -> None:
    """Each stack is shown where it is chosen; the decoder reads the image in either case."""
    spec = llava()
    both = AttentionInput([3, *[19] * 4, 5], values=values_of(spec, "image"))
    found = attended(spec, both, 3)
    check_maps(spec, found)
    assert list(found.maps) == ["image", "decoder"]
    assert (len(found.ids["decoder"]), len(found.names["image"]), len(found.written)) == (8, 5, 3)
    alone = attended(spec, both, 3, choose(spec, ["decoder"]))
    assert list(alone.maps) == ["decoder"]
    assert torch.equal(alone.maps["decoder"][1].weights, found.maps["decoder"][1].weights)
    model = filled(spec)
    whole = model(torch.tensor([found.ids["decoder"]]), pixel_values=torch.from_numpy(both.values).double())
    assert whole.logits[0, 5:].argmax(-1).tolist() == found.written
    blind = attended(spec, AttentionInput(both.ids), choice=choose(spec, ["decoder"]))
    assert not torch.allclose(blind.maps["decoder"][1].weights, found.maps["decoder"][1].weights[:, :6, :6])
    seen = attended(spec, AttentionInput(values=both.values), choice=choose(spec, ["image"]))
    assert torch.equal(seen.maps["image"][0].weights, found.maps["image"][0].weights)


def test_pooling_by_attention_is_no_layer() -> None:
    """As in SigLIP: the pooling's query is none of the patches."""
    feed_forward = {"kind": "mlp", "hidden": 8, "activation": "gelu"}
    pooling = {
        "attention": {"kind": "multi_head", "heads": 2},
        "norm": {"kind": "layer_norm"},
        "feed_forward": feed_forward,
    }
    spec = vit(head={"kind": "pooled", "pooling": pooling})
    found = attended(spec, AttentionInput(values=values_of(spec, "encoder")))
    assert [each.weights.shape for each in found.maps["encoder"]] == [(2, 5, 5)] * 2


# ---------------------------------------------------------------------------------------------------- patches


def test_attention_to_patches_is_laid_over_the_image() -> None:
    """A patch has the place that it has in the image, and the pixels are those that patches cover."""
    spec = vit(embedding={"kind": "patches", "image_size": 7, "patch_size": 3, "registers": 1})
    values = np.zeros((1, 3, 7, 7), np.float32)
    values[0, :, :3, 3:6] = 2  # the patch r0c1
    image = patch_images(spec, reading := AttentionInput(values=values))["encoder"]
    assert (image.rows, image.columns, image.pixels.shape) == (2, 2, (6, 6))
    assert (image.pixels[:3, 3:] == 1).all()
    assert image.pixels.sum() == 9
    found = attended(spec, reading)
    layer, labels = found.maps["encoder"][0], found.names["encoder"]
    first, second = patch_maps(layer, image, labels, mean=False)
    assert (first.view.title, second.query) == ("layer 0, head 0", "[CLS]")
    weights = layer.weights[0, 0, 2:].numpy().reshape(2, 2)
    assert first.largest == pytest.approx(weights.max())
    np.testing.assert_allclose(first.shares * first.largest, weights, rtol=1e-5)
    assert first.note == f"[CLS]: up to {weights.max():.1%}"
    (mean,) = patch_maps(layer, image, labels, mean=True)
    np.testing.assert_allclose(mean.shares.max(), 1)


def test_without_a_class_token_the_mean_of_patches_is_shown() -> None:
    spec = vit(embedding={"kind": "patches", "image_size": 6, "patch_size": 3, "class_token": False, "registers": 2},
               head={"kind": "classification", "labels": 3, "pooling": "mean"})  # fmt: skip
    reading = AttentionInput(values=values_of(spec, "encoder"))
    found = attended(spec, reading)
    layer = found.maps["encoder"][0]
    each = patch_maps(layer, patch_images(spec, reading)["encoder"], found.names["encoder"], mean=False)[1]
    assert each.query == "mean"
    wanted = layer.weights[1, 2:, 2:].mean(0).numpy().reshape(2, 2)
    np.testing.assert_allclose(each.shares * each.largest, wanted, rtol=1e-5)


def test_queries_that_join_an_image_are_no_patches() -> None:
    encoder = {"layers": 2, "queries": {"count": 3, "layers": 1}, "block": BLOCK}
    spec = vit(encoder=encoder, head={"kind": "masks", "labels": 2})
    reading = AttentionInput(values=values_of(spec, "encoder"))
    found = attended(spec, reading)
    image = patch_images(spec, reading)["encoder"]
    last = found.maps["encoder"][1]
    each = patch_maps(last, image, found.names["encoder"], mean=False)[0]
    wanted = last.weights[0, 0, 1:-3].numpy().reshape(image.rows, image.columns)
    np.testing.assert_allclose(each.shares * each.largest, wanted, rtol=1e-5)


def test_every_token_of_a_decoder_has_a_grid() -> None:
    spec = trocr()
    reading = AttentionInput(target=[3, 5], values=values_of(spec, "encoder"))
    found = attended(spec, reading)
    layer = found.maps["cross"][1]
    first, second = patch_maps(layer, patch_images(spec, reading)["encoder"], ["a", "b"], mean=True)
    assert (first.query, second.query) == ("a", "b")
    wanted = layer.weights.mean(0)[1, 1:].numpy().reshape(2, 2)
    np.testing.assert_allclose(second.shares * second.largest, wanted, rtol=1e-5)


@pytest.mark.slow
def test_pictures_of_patches() -> None:
    """Rows and columns are those of the image; a decoder's tokens are side by side."""
    spec = trocr()
    reading = AttentionInput(target=[3, 5, 7], values=values_of(spec, "encoder"))
    found, images = attended(spec, reading), patch_images(spec, reading)
    labels = {**found.names, "decoder": ["a", "b", "c"]}
    drawn = {grid.title: grid for grid in grids(found, "tiny", labels, images, mean=False)}
    over, matrix, cross = drawn.values()
    assert list(drawn) == ["tiny: encoder", "tiny: decoder", "tiny: decoder to encoder"]
    assert (list(over.rows), list(over.columns), over.across) == (["r0", "r1"], ["c0", "c1"], 2)
    assert (matrix.rows, matrix.image) == (["a", "b", "c"], None)
    assert [each.title for each in cross.maps[:4]] == ["layer 0, head 0"] * 3 + ["layer 0, head 1"]
    assert [each.note.split(":")[0] for each in cross.maps[:3]] == ["a", "b", "c"]
    assert (len(cross.maps), cross.across) == (12, 3)
    assert cross.image is images["encoder"].pixels
    faded = svg(heat_maps([over]))
    assert faded == svg(heat_maps([over]))
    assert faded != svg(heat_maps([replace(over, image=np.zeros((6, 6), np.float32))]))


def test_recording_changes_nothing_and_leaves_nothing_behind() -> None:
    spec, calls = gpt2(), list[AttentionCall]()
    model = filled(spec)
    ids = torch.tensor([[1, 2, 3]])
    before = model(ids).logits
    with Recording(model, calls.append):
        during = model(ids).logits
    after = model(ids).logits
    assert torch.equal(before, during)
    assert torch.equal(before, after)
    assert [(call.stack, call.layer) for call in calls] == [("decoder", 0), ("decoder", 1)]
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_layers_that_are_one_are_shown_each_time() -> None:
    block = {**BLOCK, "kind": "post_norm"}
    spec = bert(encoder={"layers": [{"repeat": 3, "shared": True}], "block": block})
    maps = attended(spec, AttentionInput([1, 2, 3])).maps["encoder"]
    assert [each.layer for each in maps] == [0, 1, 2]
    assert not torch.allclose(maps[0].weights, maps[1].weights)


def test_types_of_tokens_are_read() -> None:
    one, two = (
        attended(bert(), AttentionInput([1, 2, 3, 4], types)) for types in ([0, 0, 0, 0], [0, 0, 1, 1])
    )
    assert not torch.allclose(one.maps["encoder"][0].weights, two.maps["encoder"][0].weights)


def test_a_stop_token_ends_generation() -> None:
    whole = attended(gpt2(), AttentionInput([1, 2]), new_tokens=4)
    assert len(whole.written) == 4
    steps = list(attend(filled(gpt2()), AttentionInput([1, 2]), choose(gpt2()), 4, stop=[whole.written[1]]))
    assert Attended.of(steps).written == whole.written[: 1 + whole.written.index(whole.written[1])]


class Sum(nn.Module):
    """Gives each token the mean of all: an attention without weights of its own."""

    def forward(self, x: Tensor, scope: object, past: object) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        split = x[:, None]
        return merge_heads(F.scaled_dot_product_attention(0 * split, split, split)), (split, split)


def test_an_attention_without_weights_is_named() -> None:
    model: Any = filled(gpt2())
    model.decoder.blocks[1].attention = Sum()
    with pytest.raises(UserError) as told:
        list(attend(model, AttentionInput([1, 2]), choose(gpt2())))
    assert str(told.value) == (
        "Layer 1 of decoder has no attention weights: its attention does not call zoo.functional.attention\n"
        "  Choose other layers with layer, or call that function in the component."
    )
    (step,) = attend(model, AttentionInput([1, 2]), choose(gpt2(), layers=[0]))
    assert [each.layer for each in step.maps] == [0]


# ---------------------------------------------------------------------------------------------------- how they spread


def test_entropies_are_in_bits() -> None:
    half = torch.tensor([[[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0.5, 0.25, 0.25, 0], [0.25, 0.25, 0.25, 0.25]]])
    seen = torch.ones(4, 4, dtype=torch.bool).tril()
    each = LayerMap("decoder", 0, [0], half, seen, False)
    assert each.entropy == [(0 + 1 + 1.5 + 2) / 4]
    assert each.uniform_entropy == pytest.approx((0 + 1 + math.log2(3) + 2) / 4)


def test_equal_weights_are_uniform() -> None:
    spec = gpt2()
    model = filled(spec)
    for block in model.decoder.blocks:
        nn.init.zeros_(block.attention.query.weight)
        nn.init.zeros_(block.attention.query.bias)
    for each in Attended.of(list(attend(model, AttentionInput([1, 2, 3]), choose(spec)))).maps["decoder"]:
        assert each.entropy == pytest.approx([each.uniform_entropy] * 2)
        assert each.uniform_entropy == pytest.approx((0 + 1 + math.log2(3)) / 3)


def test_views_show_each_head_or_the_mean() -> None:
    each = attended(gpt2(), AttentionInput([1, 2, 3])).maps["decoder"][1]
    first, second = each.views()
    (mean,) = each.views(mean=True)
    assert (first.title, mean.title) == ("layer 1, head 0", "layer 1, mean of 2 heads")
    torch.testing.assert_close(mean.weights, (first.weights + second.weights) / 2)
    assert mean.entropy == pytest.approx((first.entropy + second.entropy) / 2)
    assert torch.equal(mean.shares.isnan(), ~each.seen)


# ---------------------------------------------------------------------------------------------------- choosing


def test_a_choice_is_all_that_is_kept() -> None:
    spec = t5()
    chosen = choose(spec, ["cross", "encoder"], [1], [1])
    found = attended(spec, AttentionInput([1, 2, 3], target=[0, 4]), choice=chosen)
    whole = attended(spec, AttentionInput([1, 2, 3], target=[0, 4]))
    assert set(found.maps) == {"encoder", "cross"}
    for stack, (only,) in found.maps.items():
        assert (only.layer, list(only.heads)) == (1, [1])
        assert torch.equal(only.weights, whole.maps[stack][1].weights[1:])


def test_an_unchosen_decoder_does_not_run() -> None:
    found = attended(t5(), AttentionInput([1, 2, 3], target=[0]), 4, choose(t5(), ["encoder"]))
    assert (set(found.maps), found.ids) == ({"encoder"}, {"encoder": [1, 2, 3]})


REFUSED: dict[tuple[str, ...], str] = {
    ("tower",): "stack 'tower' is unknown\n  Choose from: encoder, text, image, decoder, cross.",
    ("cros",): "stack 'cros' is unknown\n  Did you mean 'cross'?",
    (
        "cross",
    ): "tiny-gpt2 has no such attention: its architecture is decoder\n  value: stack cross\n  Use decoder.",
}


@pytest.mark.parametrize("stacks", REFUSED)
def test_no_such_stack(stacks: tuple[str, ...]) -> None:
    with pytest.raises(UserError) as told:
        choose(gpt2(), stacks)
    assert str(told.value).startswith(REFUSED[stacks])


def test_no_such_layer_or_head() -> None:
    with pytest.raises(UserError) as told:
        choose(t5(), ["cross"], [0, 2])
    assert str(told.value) == (
        "The cross-attention of tiny-t5 has no such layer\n  value: layer 2\n  Use 0 to 1."
    )
    with pytest.raises(UserError) as told:
        choose(t5(), layers=[1], heads=[1, 5])
    assert str(told.value) == (
        "Layer 1 of the encoder of tiny-t5 has no such head\n  value: head 5\n  Use 0 to 1."
    )
