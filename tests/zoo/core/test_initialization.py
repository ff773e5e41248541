"""Random weights: their spread against the models that the recipes come from, and what they depend on."""

import math
from typing import Any

import pytest
import torch
import transformers
from torch import nn

from specs.base.errors import PluginError
from specs.kinds.norm import LayerNorm
from specs.model.model import Model
from tests.zoo.filled import random_model
from tests.zoo.tiny import BLOCK, bert, gpt2, t5
from zoo import registry
from zoo.builder import assemble
from zoo.checkpoints.write import stored_tensors
from zoo.families.registry import family
from zoo.weights.random import PIECE, RandomWeights


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)  # the references draw from the global generator


def drawn(spec: Model, seed: int = 0) -> Any:
    return random_model(spec, seed)


def assert_spread(ours: torch.Tensor, theirs: torch.Tensor, name: str) -> None:
    """Equal means and standard deviations within five times the sampling error."""
    if theirs.unique().numel() == 1:
        assert torch.equal(ours, theirs), name
        return
    error = 5 * theirs.std() / math.sqrt(theirs.numel())
    assert abs(ours.mean() - theirs.mean()) < error * math.sqrt(2), name
    assert abs(ours.std() - theirs.std()) < error, name


def assert_same_recipe(spec: Model, reference: nn.Module, model_type: str) -> None:
    tensors = dict(stored_tensors(drawn(spec), spec, family(model_type).tensors))
    state = reference.state_dict()
    for name, tensor in tensors.items():
        assert_spread(tensor, state[name], name)


def test_gpt2_scales_weights_that_write_to_the_residual_stream():
    block = {
        **BLOCK,
        "attention": {"kind": "multi_head", "heads": 4},
        "feed_forward": {"kind": "mlp", "hidden": 256, "activation": "gelu_tanh"},
    }
    spec = gpt2(
        vocab_size=500, d_model=64, context_length=100,
        decoder={"layers": 8, "block": block},
        initialization={"kind": "normal", "std": 0.05, "depth_scaled": True},
    )  # fmt: skip
    config = transformers.GPT2Config(
        vocab_size=500, n_embd=64, n_layer=8, n_head=4, n_positions=100, initializer_range=0.05,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    assert_same_recipe(spec, transformers.GPT2LMHeadModel(config), "gpt2")
    output = drawn(spec).decoder.blocks[3].attention.output.weight
    assert output.std().item() == pytest.approx(0.05 / 4, rel=0.05)


def test_bert():
    block = {
        "kind": "post_norm",
        "norm": {"kind": "layer_norm"},
        "attention": {"kind": "multi_head", "heads": 4},
        "feed_forward": {"kind": "mlp", "hidden": 128, "activation": "gelu"},
    }
    head = {"kind": "masked_language_modeling", "norm": {"kind": "layer_norm"}, "tie_embeddings": False}
    spec = bert(
        vocab_size=400, d_model=64, context_length=90,
        encoder={"layers": 2, "block": block},
        head=head,
        initialization={"kind": "normal", "std": 0.03},
    )  # fmt: skip
    config = transformers.BertConfig(
        vocab_size=400, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
        max_position_embeddings=90, initializer_range=0.03, tie_word_embeddings=False, pad_token_id=None,
    )  # fmt: skip
    assert_same_recipe(spec, transformers.BertForMaskedLM(config), "bert")


@pytest.mark.parametrize("gated", [False, True])
def test_t5_factors(gated):
    block = {
        "kind": "pre_norm",
        "norm": {"kind": "rms_norm"},
        "attention": {"kind": "multi_head", "heads": 6, "head_dim": 24, "bias": False, "scale": 1.0},
        "feed_forward": {"kind": "gated" if gated else "mlp", "hidden": 200, "activation": "relu", "bias": False},
    }  # fmt: skip
    stack = {"layers": 2, "block": block}
    spec = t5(
        vocab_size=400, d_model=48, encoder=stack, decoder=stack, initialization={"kind": "t5", "factor": 1.0}
    )
    config = transformers.T5Config(
        vocab_size=400, d_model=48, d_kv=24, d_ff=200, num_layers=2, num_heads=6,
        feed_forward_proj="gated-relu" if gated else "relu",
    )  # fmt: skip
    assert_same_recipe(spec, transformers.T5ForConditionalGeneration(config), "t5")


def test_t5_factor_scales_matrices():
    whole, half = (drawn(t5(initialization={"kind": "t5", "factor": factor})) for factor in (1.0, 0.5))
    for (name, one), (_, other) in zip(whole.named_parameters(), half.named_parameters(), strict=True):
        factor = 0.5 if one.dim() > 1 else 1.0
        torch.testing.assert_close(other, one * factor, msg=name)


def test_xavier_uniform_is_torchs():
    spec = bert(vocab_size=300, d_model=64, initialization={"kind": "xavier_uniform"})
    model = drawn(spec)
    weight = model.encoder.blocks[0].feed_forward.up.weight  # 12 x 64
    theirs = nn.init.xavier_uniform_(torch.empty(12, 64))
    assert_spread(weight, theirs, "up")
    assert weight.abs().max() <= math.sqrt(6 / (12 + 64))
    assert model.embedding.token.weight.std().item() == pytest.approx(64**-0.5, rel=0.05)


def test_norms_and_biases():
    for name, parameter in drawn(bert(head={"kind": "pooler"})).named_parameters():
        if parameter.dim() == 1:
            expected = 0.0 if name.endswith("bias") else 1.0
            assert (parameter == expected).all(), name


@pytest.mark.parametrize("kind", ["rms_norm", "layer_norm"])
def test_norms_begin_by_multiplying_by_one_and_sinks_as_a_key_of_score_zero(kind):
    norm = {"kind": kind, "unit_offset": True}
    attention = {
        "kind": "multi_head", "heads": 2, "sinks": True,
        "qk_norm": {"norm": norm, "over": "each_head"},
    }  # fmt: skip
    model = drawn(gpt2(decoder={"layers": 1, "block": {**BLOCK, "norm": norm, "attention": attention}}))
    block = model.decoder.blocks[0]
    assert block.attention.query_norm.weight.shape == (2, 4)
    for weight in (block.attention_norm.weight, block.attention.query_norm.weight, block.attention.sinks):
        assert (weight == 0).all()
    plain = {**attention, "qk_norm": {"norm": {"kind": "layer_norm"}, "over": "each_head"}}
    model = drawn(gpt2(decoder={"layers": 1, "block": {**BLOCK, "attention": plain}}))
    query_norm = model.decoder.blocks[0].attention.query_norm
    assert (query_norm.weight == 1).all()
    assert (query_norm.bias == 0).all()


def pieces(source: RandomWeights, name: str) -> torch.Tensor:
    return torch.cat(list(source.pieces(name)))


def test_the_same_seed_gives_the_same_numbers_in_any_order():
    spec = gpt2()
    model = assemble(spec)
    names = [name for name, _ in model.named_parameters()]
    first, second = (RandomWeights(model, spec, seed=7) for _ in range(2))
    forwards = {name: pieces(first, name) for name in names}
    for name in reversed(names):
        assert torch.equal(pieces(second, name), forwards[name])


def test_another_seed_and_another_name_give_other_numbers():
    one, other = drawn(gpt2(), seed=1), drawn(gpt2(), seed=2)
    blocks = one.decoder.blocks
    assert not torch.equal(one.embedding.token.weight, other.embedding.token.weight)
    assert not torch.equal(blocks[0].attention.query.weight, blocks[1].attention.query.weight)
    assert not torch.equal(blocks[0].attention.query.weight, blocks[0].attention.key.weight)


def test_the_global_generator_is_left_alone():
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    drawn(gpt2())
    assert torch.equal(torch.rand(4), expected)


def test_tied_weights_are_drawn_once_and_stay_tied():
    model = drawn(t5())
    assert model.head.vocabulary.weight is model.encoder_embedding.token.weight
    assert model.decoder_embedding.token.weight is model.encoder_embedding.token.weight
    assert not any(parameter.is_meta for parameter in model.parameters())


def test_depth_and_other_parts_do_not_change_a_parameters_numbers():
    shallow = drawn(gpt2())
    deep = drawn(gpt2(decoder={"layers": 5, "block": BLOCK}, head={"kind": "none"}))
    for name, parameter in shallow.named_parameters():
        assert torch.equal(parameter, deep.get_parameter(name)), name


def test_lower_precision_rounds_the_same_numbers():
    spec = gpt2()
    model = assemble(spec)
    whole, half = (RandomWeights(model, spec, 5, dtype) for dtype in (torch.float32, torch.bfloat16))
    for name, _ in model.named_parameters():
        assert torch.equal(pieces(half, name), pieces(whole, name).bfloat16())


def test_large_tensors_come_in_pieces():
    spec = gpt2(vocab_size=PIECE // 8 + 10)
    sizes = [piece.numel() for piece in RandomWeights(assemble(spec), spec).pieces("embedding.token.weight")]
    assert sizes == [PIECE, 80]


def test_an_initial_value_that_is_no_distribution_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = gpt2()
    monkeypatch.setattr("zoo.components.norm.LayerNorm.initial", lambda module, leaf: 1.0)
    with pytest.raises(PluginError) as caught:
        drawn(spec)
    assert str(caught.value) == (
        "zoo.components.norm.LayerNorm.initial('weight') must return a Distribution or None\n"
        "  value: 1.0\n"
        "  Return zoo.core.initialization.Distribution(constant=1.0), for example."
    )


def test_a_built_in_kind_without_a_module_names_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = gpt2()
    assemble(spec)
    builders = {kind: module for kind, module in registry._builders.items() if kind is not LayerNorm}
    monkeypatch.setattr(registry, "_builders", builders)
    with pytest.raises(PluginError, match=r"^Kind 'layer_norm' has no builder\n") as caught:
        assemble(spec)
    assert str(caught.value).endswith(
        "Decorate its module in zoo/components/norm.py with zoo.registry.builds."
    )
