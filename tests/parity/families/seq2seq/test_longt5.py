"""LongT5 with local and transient global attention against transformers."""

from __future__ import annotations

from typing import Any

import torch
import transformers as hf
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

import zoo
from tests.parity.families.draws import FLAG, VOCAB
from tests.parity.families.family import FamilyTests
from tests.parity.families.harness import check
from tests.parity.reference import build
from zoo.configs.importing import import_spec, spec_of_config
from zoo.families.common.config import Config

CONFIGS = {
    "scaled": dict(
        vocab_size=61, d_model=21, d_kv=5, d_ff=33, num_layers=2, num_decoder_layers=3, num_heads=3, local_radius=2,
        relative_attention_num_buckets=10, relative_attention_max_distance=17, layer_norm_epsilon=1e-3,
        feed_forward_proj="relu",
    ),
    "unscaled": dict(
        vocab_size=50, d_model=32, d_kv=6, d_ff=20, num_layers=3, num_decoder_layers=1, num_heads=4, local_radius=4,
        relative_attention_num_buckets=8, relative_attention_max_distance=9, feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
    ),
    "summaries": dict(
        vocab_size=41, d_model=24, d_kv=7, d_ff=20, num_layers=3, num_decoder_layers=2, num_heads=3, local_radius=2,
        encoder_attention_type="transient-global", global_block_size=4, relative_attention_num_buckets=6,
        relative_attention_max_distance=5, layer_norm_epsilon=1e-3, tie_word_embeddings=False,
    ),
    "summaries of pairs": dict(
        vocab_size=30, d_model=16, d_kv=4, d_ff=20, num_layers=2, num_decoder_layers=1, num_heads=4, local_radius=1,
        encoder_attention_type="transient-global", global_block_size=2, feed_forward_proj="gated-gelu",
    ),
    "no full block": dict(
        vocab_size=30, d_model=16, d_kv=4, d_ff=20, num_layers=2, num_decoder_layers=1, num_heads=2, local_radius=3,
        encoder_attention_type="transient-global", global_block_size=64,
    ),
}  # fmt: skip


def test_a_stored_output_matrix_is_one_of_its_own(tmp_path):
    reference = build(hf.LongT5ForConditionalGeneration, hf.LongT5Config(**CONFIGS["unscaled"]), seed=1)
    reference.save_pretrained(tmp_path)
    head: Any = import_spec(tmp_path).head
    assert head.tie_embeddings
    tensors = load_file(tmp_path / "model.safetensors")
    save_file({**tensors, "lm_head.weight": 2 * tensors["shared.weight"]}, tmp_path / "model.safetensors")
    spec: Any = import_spec(tmp_path)
    assert (spec.head.tie_embeddings, spec.head.scale) == (False, None)
    zoo.convert(spec, tmp_path, tmp_path / "again")
    given = {"input_ids": torch.arange(12)[None], "decoder_input_ids": torch.arange(3, 8)[None]}
    before, after = (
        hf.LongT5ForConditionalGeneration.from_pretrained(place).eval()(**given).logits
        for place in (tmp_path, tmp_path / "again")
    )
    assert torch.equal(before, after)
    torch.testing.assert_close(after, 2 * reference.eval()(**given).logits)


def test_a_config_of_transformers_4_states_whether_the_output_matrix_is_one_of_its_own():
    for stated, tied in ((True, True), (False, False)):
        config = Config({"model_type": "longt5", "tie_word_embeddings": stated}, "config.json")
        head: Any = spec_of_config(config, name="longt5").head
        assert (head.tie_embeddings, head.scale is not None) == (tied, stated)


class TestLongT5(FamilyTests):
    model_class = hf.LongT5ForConditionalGeneration
    configs = CONFIGS
    heads = ("Model", "Model")
    drawn = {"length": 15}
    of_refusals = "summaries"
    refusals = (
        ("local_radius", 0, "must be at least 1"),
        ("encoder_attention_type", "global", "is not supported"),
        ("global_block_size", 12, "must be a power of 2 up to 64"),
        ("is_decoder", True, "must be false"),
    )

    @staticmethod
    def check(model_class, config, directory, **options):
        if config.encoder_attention_type == "transient-global":
            options["sides"] = (
                "right",
            )  # with padding before a text, the reference's first block has fewer tokens
        return check(model_class, config, directory, **options)

    @staticmethod
    def draw(data):
        buckets = data.draw(st.integers(4, 36), "buckets")
        return dict(
            vocab_size=VOCAB, d_model=st.integers(4, 40), d_kv=st.integers(1, 9), d_ff=st.integers(1, 60),
            num_layers=st.integers(1, 3), num_decoder_layers=st.integers(1, 3), num_heads=st.integers(1, 6),
            local_radius=st.integers(1, 20), encoder_attention_type=st.sampled_from(["local", "transient-global"]),
            global_block_size=st.sampled_from([1, 2, 4, 8, 16]), relative_attention_num_buckets=buckets,
            relative_attention_max_distance=buckets // 2 + data.draw(st.integers(1, 40), "reach"),
            feed_forward_proj=st.sampled_from(["relu", "gated-gelu"]), tie_word_embeddings=FLAG,
        )  # fmt: skip
