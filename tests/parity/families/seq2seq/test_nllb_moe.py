"""NLLB-MoE against transformers, whose experts are replaced by the formula that its first releases computed.

Since they were rewritten, they take the router's mask for indices: the best expert of every token is then the second one, and the
next best the first one.
"""

from __future__ import annotations

import pytest
import torch
import transformers as hf
from hypothesis import strategies as st
from transformers.models.nllb_moe.modeling_nllb_moe import NllbMoeExperts

from tests.parity.families.draws import FLAG, LAYERS
from tests.parity.families.family import FamilyTests


def weighted_sum(self: NllbMoeExperts, x: torch.Tensor, _, weights: torch.Tensor) -> torch.Tensor:
    """The sum of all experts by the router's weights: x N D and weights N E -> N D."""
    every = torch.stack([self[f"expert_{index}"](x) for index in range(self.num_experts)], 1)  # N E D
    return (1 - self.moe_token_dropout) * (weights.unsqueeze(-1) * every).sum(1)


@pytest.fixture(autouse=True, scope="module")
def _right_experts():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NllbMoeExperts, "forward", weighted_sum)
        yield


class TestNllbMoe(FamilyTests):
    model_class = hf.NllbMoeForConditionalGeneration
    configs = {
        "every other, every third": dict(
            vocab_size=61, d_model=24, max_position_embeddings=17, encoder_layers=4, encoder_ffn_dim=33,
            encoder_attention_heads=3, decoder_layers=3, decoder_ffn_dim=25, decoder_attention_heads=4,
            encoder_sparse_step=2, decoder_sparse_step=3, num_experts=5, moe_token_dropout=0.3, attention_dropout=0.3,
        ),
        "biases": dict(
            vocab_size=50, d_model=32, max_position_embeddings=40, encoder_layers=1, encoder_ffn_dim=20,
            encoder_attention_heads=4, decoder_layers=2, decoder_ffn_dim=41, decoder_attention_heads=2,
            encoder_sparse_step=1, decoder_sparse_step=0, num_experts=2, router_bias=True, scale_embedding=False,
            pad_token_id=4, activation_function="gelu", moe_token_dropout=0.0,
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("moe_eval_capacity_token_fraction", 0.5, "depends on the rest of its batch"),
        ("second_expert_policy", "sampling", "the second expert is drawn"),
        ("moe_token_dropout", 1.0, "less than 1"),
        ("router_dtype", "bfloat16", "routing is computed in float32"),
        ("tie_word_embeddings", False, "must be true"),
    )

    @staticmethod
    def draw(data):
        encoder_heads, decoder_heads = data.draw(st.sampled_from([(1, 3), (2, 1), (2, 2), (3, 6)]), "heads")
        return dict(
            vocab_size=st.integers(9, 90), d_model=12 * data.draw(st.integers(1, 4), "d_model over 12"),
            max_position_embeddings=st.integers(4, 40), encoder_layers=LAYERS, decoder_layers=st.integers(1, 3),
            encoder_attention_heads=encoder_heads, decoder_attention_heads=decoder_heads,
            encoder_ffn_dim=st.integers(1, 50), decoder_ffn_dim=st.integers(1, 50),
            encoder_sparse_step=st.integers(0, 3), decoder_sparse_step=st.integers(0, 3),
            num_experts=st.integers(2, 6), router_bias=FLAG, moe_token_dropout=st.sampled_from([0.0, 0.2, 0.5]),
            activation_function=st.sampled_from(["gelu", "relu", "silu"]),
        )  # fmt: skip
