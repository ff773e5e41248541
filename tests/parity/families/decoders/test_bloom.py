"""BLOOM against transformers."""

from __future__ import annotations

import torch
import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import FLAG, LAYERS, VOCAB
from tests.parity.families.family import FamilyTests
from tests.parity.families.llamas import ALL
from tests.parity.reference import assert_close, build, load, step_through
from zoo.configs.importing import import_spec


def test_padding_between_a_prompt_and_its_steps_has_no_place(tmp_path):
    """The reference counts real tokens as well."""
    reference = build(hf.BloomForCausalLM, TestBloom.configured("odd-heads"), 1)
    reference.save_pretrained(tmp_path)
    ours = load(import_spec(tmp_path), tmp_path)
    mask = torch.tensor([[1, 1, 1, 1, 1, 1, 1, 1], [1, 1, 0, 0, 0, 1, 1, 1]])
    ids = torch.randint(61, mask.shape, generator=torch.Generator().manual_seed(3))
    with torch.inference_mode():
        expected = reference(input_ids=ids, attention_mask=mask).logits
        assert_close(step_through(ours, ids, mask, prefill=5), expected, mask)


class TestBloom(FamilyTests):
    model_class = hf.BloomForCausalLM
    configs = {
        "odd-heads": dict(vocab_size=61, hidden_size=21, n_layer=3, n_head=3, layer_norm_epsilon=1e-3),
        "untied": dict(
            vocab_size=40, hidden_size=32, n_layer=1, n_head=4, layer_norm_epsilon=1e-6, tie_word_embeddings=False,
        ),
        "residuals after norms": dict(
            vocab_size=53, hidden_size=20, n_layer=2, n_head=5, layer_norm_epsilon=1e-4,
            apply_residual_connection_post_layernorm=True,
        ),
        "twelve heads": dict(vocab_size=83, hidden_size=36, n_layer=2, n_head=12, layer_norm_epsilon=1e-5),
    }  # fmt: skip
    heads = ALL
    refusals = (
        ("n_inner", 30, "must be 84"),
        ("rope_theta", 4.0, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        heads = data.draw(st.integers(1, 9), "heads")
        return dict(
            vocab_size=VOCAB, hidden_size=heads * data.draw(st.integers(2, 9), "head_dim"), n_layer=LAYERS,
            n_head=heads, layer_norm_epsilon=st.sampled_from([1e-5, 1e-3, 1e-2]), tie_word_embeddings=FLAG,
            apply_residual_connection_post_layernorm=FLAG,
        )  # fmt: skip
