"""T5 and T5 1.1 against transformers."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from transformers import T5Config, T5ForConditionalGeneration

from tests.parity.reference import assert_close, build, load, ragged, t5_spec, through_checkpoint

CONFIGS = {
    "tied": dict(
        vocab_size=61, d_model=21, d_kv=5, d_ff=33, num_layers=2, num_decoder_layers=3, num_heads=3,
        relative_attention_num_buckets=12, relative_attention_max_distance=17, layer_norm_epsilon=1e-3,
        feed_forward_proj="relu",
    ),
    "gated-untied": dict(
        vocab_size=50, d_model=32, d_kv=6, d_ff=20, num_layers=3, num_decoder_layers=1, num_heads=4,
        relative_attention_num_buckets=8, relative_attention_max_distance=9, layer_norm_epsilon=1e-6,
        feed_forward_proj="gated-gelu", tie_word_embeddings=False,
    ),
    "gated-tied": dict(
        vocab_size=44, d_model=18, d_kv=9, d_ff=27, num_layers=1, num_decoder_layers=2, num_heads=5,
        relative_attention_num_buckets=32, relative_attention_max_distance=128, layer_norm_epsilon=1e-5,
        feed_forward_proj="gated-silu",
    ),
}  # fmt: skip


def reference_of(config: T5Config, seed: int, *, tied: bool) -> T5ForConditionalGeneration:
    reference = build(T5ForConditionalGeneration, config, seed)
    if not tied:  # transformers ties T5's head whatever the configuration says
        generator = torch.Generator().manual_seed(seed + 1)
        drawn = 0.2 * torch.randn(reference.lm_head.weight.shape, generator=generator)
        reference.lm_head.weight = nn.Parameter(drawn)
    return reference


def check(config: T5Config, directory, seed: int, *, tied: bool) -> None:
    reference = reference_of(config, seed, tied=tied)
    model = through_checkpoint(reference, t5_spec(config, tied=tied), directory)
    for side in ("right", "left"):
        ids, mask = ragged(3, 15, config.vocab_size, side, seed)
        targets, target_mask = ragged(3, 12, config.vocab_size, side, seed + 1)
        with torch.no_grad():
            theirs = reference(ids, mask, targets, target_mask)
            ours = model(ids, targets, mask, target_mask)
            assert_close(model.encode(ids, mask).last_hidden_state, theirs.encoder_last_hidden_state, mask)
            assert_close(ours.logits, theirs.logits, target_mask)
            assert_close(steps(model, ids, mask, targets, target_mask), theirs.logits, target_mask)


def steps(model, ids, mask, targets, target_mask):
    """The logits of a decoder that is given its tokens one at a time."""
    encoded, past, logits = model.encode(ids, mask).present_key_values, None, []
    for end in range(1, targets.shape[1] + 1):
        outputs = model.decode(targets[:, end - 1 : end], encoded, mask, past, target_mask[:, :end])
        past = outputs.present_key_values
        logits.append(outputs.logits)
    return torch.cat(logits, 1)


@pytest.mark.parametrize("name", CONFIGS)
def test_logits_and_cached_steps(name, tmp_path):
    values = CONFIGS[name]
    check(T5Config(**values), tmp_path, seed=1, tied=values.get("tie_word_embeddings", True))


def test_reads_a_checkpoint_that_stores_the_shared_table_under_every_name(tmp_path):
    from safetensors.torch import save_file

    config = T5Config(**CONFIGS["tied"])
    reference = reference_of(config, 3, tied=True)
    tensors = {name: tensor.clone() for name, tensor in reference.state_dict().items()}
    copies = {"shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"}
    assert copies <= set(tensors)
    save_file(tensors, tmp_path / "model.safetensors")
    model = load(t5_spec(config, tied=True), tmp_path)
    ids, mask = ragged(2, 7, config.vocab_size, "right", 4)
    with torch.no_grad():
        assert_close(model(ids, ids, mask).logits, reference(ids, mask, ids).logits)


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    buckets = 4 * data.draw(st.integers(1, 9), "buckets")
    tied = data.draw(st.booleans(), "tied")
    config = T5Config(
        vocab_size=data.draw(st.integers(5, 90), "vocab_size"),
        d_model=data.draw(st.integers(4, 40), "d_model"),
        d_kv=data.draw(st.integers(1, 9), "d_kv"),
        d_ff=data.draw(st.integers(1, 60), "d_ff"),
        num_layers=data.draw(st.integers(1, 3), "layers"),
        num_decoder_layers=data.draw(st.integers(1, 3), "decoder_layers"),
        num_heads=data.draw(st.integers(1, 6), "heads"),
        relative_attention_num_buckets=buckets,
        relative_attention_max_distance=buckets // 2 + data.draw(st.integers(1, 40), "reach"),
        layer_norm_epsilon=data.draw(st.sampled_from([1e-6, 1e-2]), "eps"),
        feed_forward_proj=data.draw(
            st.sampled_from(["relu", "gated-gelu", "gated-silu", "gelu"]), "feed_forward"
        ),
        tie_word_embeddings=tied,
    )
    check(config, tmp_path_factory.mktemp("t5"), seed=data.draw(st.integers(0, 99), "seed"), tied=tied)
