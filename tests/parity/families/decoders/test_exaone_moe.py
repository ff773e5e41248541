"""K-EXAONE against transformers."""

from __future__ import annotations

import transformers as hf

from tests.parity.families.draws import EPS, HEAD_DIM, WINDOW
from tests.parity.families.llamas import LLAMA3, LlamaTests, draw_llama, rotation
from tests.parity.families.mixtures import draw_routed
from tests.parity.families.sizes import GROUPED, MULTI_HEAD

FULL, SLIDING = "full_attention", "sliding_attention"


class TestExaoneMoe(LlamaTests):
    model_class = hf.ExaoneMoeForCausalLM
    configs = {
        "dense first": dict(
            GROUPED, num_hidden_layers=5, moe_intermediate_size=9, num_experts=8, num_experts_per_tok=3,
            num_shared_experts=2, n_group=4, topk_group=2, sliding_window=4, rms_norm_eps=1e-3, rope_parameters=LLAMA3,
        ),
        "kinds by name, tied": dict(
            MULTI_HEAD, num_hidden_layers=3, moe_intermediate_size=7, num_experts=5, num_experts_per_tok=2,
            norm_topk_prob=False, routed_scaling_factor=1.5, tie_word_embeddings=True, sliding_window=7,
            mlp_layer_types=["sparse", "dense", "sparse"], layer_types=[SLIDING, FULL, SLIDING],
            rope_parameters=rotation(500.0),
        ),
    }  # fmt: skip
    heads = ("Model",)
    refusals = (
        ("mlp_layer_types", ["dense"] * 4, "each of the 5 layers"),
        ("mlp_layer_types", ["dense"] * 4 + ["sparsely"], "Did you mean 'sparse'?"),
        ("sliding_window", None, "must be a number"),
    )
    drawn = {"length": 17}

    @staticmethod
    def draw(data):
        routed = draw_routed(data, draw_llama(data)["num_hidden_layers"])
        routed.update(
            num_experts=routed.pop("n_routed_experts"), num_shared_experts=routed.pop("n_shared_experts")
        )
        return draw_llama(data) | routed | dict(head_dim=HEAD_DIM, sliding_window=WINDOW, rms_norm_eps=EPS)
