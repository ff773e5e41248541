"""GPT against transformers."""

from __future__ import annotations

import transformers as hf
from hypothesis import strategies as st

from tests.parity.families.draws import FLAG, LAYERS, VOCAB
from tests.parity.families.family import FamilyTests


class TestOpenAIGPT(FamilyTests):
    model_class = hf.OpenAIGPTLMHeadModel
    configs = {
        "odd-heads": dict(
            vocab_size=61, n_embd=21, n_layer=3, n_head=3, n_positions=19, afn="relu", layer_norm_epsilon=1e-3,
        ),
        "untied": dict(
            vocab_size=40, n_embd=32, n_layer=1, n_head=4, n_positions=16, afn="silu", layer_norm_epsilon=1e-6,
            tie_word_embeddings=False,
        ),
        "gelu": dict(
            vocab_size=83, n_embd=20, n_layer=2, n_head=5, n_positions=25, afn="gelu", layer_norm_epsilon=1e-5,
        ),
    }  # fmt: skip
    heads = ("Model", "ForSequenceClassification")
    refusals = (
        ("afn", "gelu_new", "Did you mean 'gelu'"),
        ("n_special", 3, "must be 0"),
        ("architectures", ["OpenAIGPTDoubleHeadsModel"], "must name a supported class"),
        ("n_inner", 4, "unsupported fields"),
    )

    @staticmethod
    def draw(data):
        heads = data.draw(st.integers(1, 7), "heads")
        return dict(
            vocab_size=VOCAB, n_embd=heads * data.draw(st.integers(3, 9), "head_dim"), n_layer=LAYERS, n_head=heads,
            n_positions=st.integers(5, 40), afn=st.sampled_from(["gelu", "relu", "silu", "swish"]),
            layer_norm_epsilon=st.sampled_from([1e-5, 1e-3, 1e-2]), tie_word_embeddings=FLAG,
        )  # fmt: skip

    def check(self, model_class, config, directory, **options):
        """Other heads with padding on the right alone: their references count positions from padding on the left."""
        sides = ("right", "left") if model_class is self.model_class else ("right",)
        return super().check(model_class, config, directory, sides=sides, **options)
