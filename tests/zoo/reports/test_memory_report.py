"""Memory: caches against those that models give, weights against the files that are written, roles against the whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor

import zoo
from exporters.export import export
from exporters.steps.options import ExportOptions
from exporters.steps.stored_size import stored_sizes
from specs.base.errors import UserError
from specs.language.load import load
from specs.model.model import Model
from tests.thinned import one_in
from tests.zoo.tiny import BLOCK, bert, gpt2, t5, vit, whisper
from zoo.builder import assemble
from zoo.core.reduced import reduced_models, small_inputs
from zoo.core.tensors import weight_bytes
from zoo.models.decoder import Decoder
from zoo.models.encoder_decoder import EncoderDecoder
from zoo.reports.folding import Folded
from zoo.reports.lengths import Lengths
from zoo.reports.memory import CachedLayers, CacheSizes, TrainingState, cache, stored_bytes
from zoo.reports.roles import roles, ties

DECODERS = [
    "gpt2", "llama-3-8b", "gemma2-2b", "gpt-oss-20b", "deepseek-v3", "mixtral-8x7b", "falcon-7b", "bloom-560m",
]  # fmt: skip


def smallest(name: str) -> Model:
    """A preset's narrowest reduced model."""
    *_, (small, _) = reduced_models(small_inputs(load(name)))
    return small


def given_bytes(*states: tuple[Tensor, ...]) -> int:
    return sum(each.nbytes for state in states for each in state)


# --------------------------------------------------------------------------------------------------------- caches


@pytest.mark.parametrize("name", DECODERS)
def test_caches_are_as_large_as_those_that_models_give(name: str) -> None:
    spec = smallest(name)
    model = zoo.build(spec, weights="random")
    assert isinstance(model, Decoder)
    first = model(torch.ones(3, 7, dtype=torch.int64)).present_key_values
    found = cache(Folded.of(spec), torch.float32)
    assert found is not None
    assert found.held(3, 7) == given_bytes(*first)
    second = model(torch.ones(3, 1, dtype=torch.int64), past_key_values=first).present_key_values
    assert given_bytes(*second) - given_bytes(*first) == 3 * found.bytes_per_token


@pytest.mark.parametrize("spec", [t5(), whisper(), smallest("bart-base")], ids=lambda spec: spec.name)
def test_cross_attention_caches_count_in_addition_to_self_attention(spec: Model) -> None:
    model = zoo.build(spec, weights="random")
    assert isinstance(model, EncoderDecoder)
    assert spec.encoder is not None
    embedding = spec.embedding_of(spec.encoder)
    inputs = (
        torch.ones(2, 5, dtype=torch.int64)
        if embedding.takes_tokens
        else torch.randn(2, *embedding.input_shape(spec.context_length_of(spec.encoder)))
    )
    encoded = model.encode(inputs).present_key_values
    own = model.decode(torch.ones(2, 3, dtype=torch.int64), encoded).present_key_values
    found = cache(Folded.of(spec), torch.float32)
    assert found is not None
    assert found.held(2, 3, encoded[0][0].shape[2]) == given_bytes(*encoded, *own)


@pytest.mark.parametrize("limit", ["window", "chunk"])
def test_a_window_needs_no_more_than_its_tokens(limit: str) -> None:
    windowed = {**BLOCK, "attention": {"kind": "multi_head", "heads": 2, limit: 4}}
    layers = [{"repeat": 2}, {"use": "local", "repeat": 3}]
    spec = gpt2(decoder={"layers": layers, "block": BLOCK, "blocks": {"local": windowed}})
    found = cache(Folded.of(spec), torch.float16)
    assert found is not None
    per_layer = 2 * 8 * 2  # keys and values of width 8, in halves
    assert found.needed(1, 3) == found.held(1, 3) == 5 * per_layer * 3
    assert found.needed(6, 10) == 6 * per_layer * (2 * 10 + 3 * 4)
    assert found.held(6, 10) == 6 * per_layer * 5 * 10
    assert found.windowed


def test_grouped_heads_share_their_keys_and_values() -> None:
    grouped, plain = (
        gpt2(decoder={"layers": 2, "block": {**BLOCK, "attention": attention}})
        for attention in (
            {"kind": "grouped_query", "heads": 4, "kv_heads": 1},
            {"kind": "multi_head", "heads": 4},
        )
    )
    sizes = [
        found.bytes_per_token for spec in (grouped, plain) if (found := cache(Folded.of(spec), torch.float32))
    ]
    assert sizes[1] == 4 * sizes[0]


def test_latents_can_be_cached_in_the_place_of_keys_and_values() -> None:
    found = cache(Folded.of(load("deepseek-v3")), torch.bfloat16)
    assert found is not None
    assert found.bytes_per_token == 61 * 128 * (192 + 128) * 2
    assert found.latent_bytes_per_token == 61 * (512 + 64) * 2
    assert cache(Folded.of(bert()), torch.float32) is None
    plain = CacheSizes((CachedLayers(2, 8, None, None, 0),), 0, torch.float32)
    assert plain.latent_bytes_per_token is None
    assert (found.form, plain.form) == ("keys and values of all heads", "")
    assert plain.as_dict()["windows"] == [{"layers": 2, "window": None, "bytes_per_token": 32}]


# -------------------------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize(
    "spec", [bert(), gpt2(), t5(), vit(), smallest("mixtral-8x7b")], ids=lambda spec: spec.name
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_weights_are_as_large_as_those_of_the_model(spec: Model, dtype: torch.dtype) -> None:
    assert stored_bytes(Folded.of(spec), dtype) == weight_bytes(assemble(spec, dtype))


def wide(kind: str = "decoder", **changes: object) -> Model:
    """A model wide enough for its matrices to be rounded, with layers of two kinds."""
    other = {**BLOCK, "feed_forward": {"kind": "gated", "hidden": 64, "activation": "silu"}}
    layers = [{"repeat": 2}, {"use": "other", "repeat": 3}]
    return gpt2(
        vocab_size=48, d_model=32, decoder={"layers": layers, "block": BLOCK, "blocks": {"other": other}}
    )


@one_in(6)
@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8", "int4"])
@pytest.mark.parametrize(
    "spec", [wide(), smallest("t5-small"), smallest("albert-base-v2")], ids=lambda spec: spec.name
)
def test_files_are_as_large_as_their_weights(spec: Model, precision: str, tmp_path: Path) -> None:
    export(spec, tmp_path / "out", ExportOptions.of(target="cuda", precision=precision, verify=False))
    exported = (tmp_path / "out" / "model.onnx.data").stat().st_size
    size = stored_sizes(spec, "cuda")[precision]
    assert size == pytest.approx(exported, rel=0.01)
    if precision == "fp32":
        assert size == pytest.approx(stored_bytes(Folded.of(spec), torch.float32), rel=0.02)


def test_fewer_bits_take_fewer_bytes() -> None:
    found = stored_sizes(wide(), "portable")
    sizes = [found[precision] for precision in ("fp32", "fp16", "int8", "int4")]
    assert sizes == sorted(set(sizes), reverse=True)


def test_training_keeps_gradients_and_two_moments_and_a_copy_of_halves() -> None:
    model = assemble(gpt2())
    count = sum(weight.numel() for weight in model.parameters())
    full, half = (TrainingState.of(Folded.of(gpt2()), dtype) for dtype in (torch.float32, torch.bfloat16))
    assert (full.weights, full.gradients, full.moments, full.master) == (4 * count, 4 * count, 8 * count, 0)
    assert (half.weights, half.gradients, half.moments, half.master) == (
        2 * count, 2 * count, 8 * count, 4 * count,
    )  # fmt: skip
    assert full.total == half.total == 16 * count


def test_adam_state_has_the_reported_size() -> None:
    model = zoo.build(gpt2(), weights="random")
    adam = torch.optim.Adam(model.requires_grad_().parameters())
    model(torch.ones(1, 3, dtype=torch.int64)).logits.sum().backward()
    adam.step()
    moments = sum(state[name].nbytes for state in adam.state.values() for name in ("exp_avg", "exp_avg_sq"))
    gradients = sum(weight.grad.nbytes for weight in model.parameters() if weight.grad is not None)
    state = TrainingState.of(Folded.of(gpt2()), torch.float32)
    assert (state.moments, state.gradients) == (moments, gradients)


# ---------------------------------------------------------------------------------------------------------- roles

ROLED = ["bert-base", "gpt2", "t5-small", "llama-3-8b", "mixtral-8x7b", "deepseek-v3", "albert-base-v2", "vit-base-16",
         "whisper-tiny", "qwen3-0.6b", "olmo2-1b", "bloom-560m"]  # fmt: skip


@pytest.mark.parametrize("name", ROLED)
def test_roles_add_up_to_the_whole(name: str) -> None:
    spec = load(name)
    found = roles(Folded.of(spec))
    assert sum(role.parameters for role in found) == zoo.parameters(spec).total_parameters
    assert "other" not in [role.name for role in found]
    routed = any(role.name == "experts" for role in found)
    assert (sum(role.active for role in found) < sum(role.parameters for role in found)) == routed


def test_every_part_has_its_role() -> None:
    counts = {role.name: role.parameters for role in roles(Folded.of(load("gpt2")))}
    assert counts == {
        "embedding": 50257 * 768,
        "positions": 1024 * 768,
        "attention": 12 * 4 * 768 * 769,
        "feed-forward": 12 * (2 * 768 * 3072 + 3072 + 768),
        "norms": 25 * 2 * 768,
    }  # the head is the embedding's table
    counts = {role.name: role.parameters for role in roles(Folded.of(load("qwen3-0.6b")))}
    assert counts["norms"] == (2 * 28 + 1) * 1024 + 28 * 2 * 128  # those of queries and keys, too
    counts = {role.name: role.parameters for role in roles(Folded.of(load("t5-small")))}
    assert counts["positions"] == 2 * 32 * 8


def test_a_tied_weight_names_its_owner() -> None:
    assert ties(Folded.of(load("gpt2"))) == {"head.vocabulary.weight": "embedding.token.weight"}
    assert ties(Folded.of(load("t5-small"))) == {"head.vocabulary.weight": "encoder_embedding.token.weight"}
    assert ties(Folded.of(load("llama-3-8b"))) == ties(Folded.of(load("albert-base-v2"))) == {}


def test_active_experts_are_those_that_a_token_is_sent_to() -> None:
    found = {role.name: role for role in roles(Folded.of(load("mixtral-8x7b")))}
    assert found["experts"].parameters == 4 * found["experts"].active
    assert found["router"].parameters == found["router"].active
    assert sum(role.active for role in found.values()) == 12_879_925_248  # 13B, as published
    shared = {role.name: role for role in roles(Folded.of(load("deepseek-v3")))}
    assert shared["feed-forward"].active == shared["feed-forward"].parameters  # the shared expert
    assert sum(role.active for role in shared.values()) == 37_552_282_624  # 37B, as published


# ---------------------------------------------------------------------------------------------------------- sizes


def test_sizes_have_sensible_defaults() -> None:
    assert Lengths.of(load("gpt2")) == Lengths(1, 1024, 1023, 1024)
    assert Lengths.of(load("bert-base")) == Lengths(1, 512, 511, 512)
    assert Lengths.of(load("t5-small"), 2, 10, source=20) == Lengths(2, 10, 10, 20)
    assert Lengths.of(load("whisper-tiny")) == Lengths(1, 448, 447, 1500)
    assert Lengths.of(load("llama-3-8b"), past=0).past == 0


WRONG: list[tuple[str, dict[str, int], str]] = [
    ("gpt2", {"length": 1025}, "length must fit the context of gpt2\n  value: 1025\n  Use 1024 or less."),
    ("gpt2", {"past": 1024}, "past must fit the context of gpt2\n  value: 1024\n  Use 1023 or less."),
    ("bert-base", {"past": 1}, "past applies only to decoders, and bert-base is an encoder\n  value: 1\n  Leave it out."),
    ("gpt2", {"source": 4}, "source_length applies only to encoder-decoders, and gpt2 is a decoder\n"
     "  value: 4\n  Use length."),
    ("bart-base", {"source": 2000}, "source_length must fit the context of bart-base\n  value: 2000\n"
     "  Use 1024 or less."),
    ("vit-base-16", {"length": 9}, "length of vit-base-16 is fixed: its embedding produces 197 vectors\n  value: 9\n"
     "  Leave it out."),
]  # fmt: skip


@pytest.mark.parametrize(("name", "sizes", "message"), WRONG)
def test_sizes_that_a_model_does_not_take_are_refused(name: str, sizes: dict[str, int], message: str) -> None:
    with pytest.raises(UserError) as error:
        Lengths.of(load(name), **sizes)
    assert str(error.value) == message


def test_states_of_constant_size_do_not_grow_with_the_tokens() -> None:
    block = {"attention": None, "mixer": {"kind": "short_convolution", "kernel_size": 4}}
    changes = [f"decoder.block.{key}={json.dumps(value)}" for key, value in block.items()]
    found = cache(Folded.of(load("tiny-gpt", [*changes, "position.kind=none"])), torch.float16)
    assert found is not None
    assert found.state_bytes == 4 * 64 * 3 * 2
    assert found.bytes_per_token == 0
    assert found.needed(3, 10) == found.needed(3, 1_000_000) == found.held(3, 10) == 3 * found.state_bytes
