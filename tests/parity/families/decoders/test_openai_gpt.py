"""GPT against transformers."""

from __future__ import annotations

from hypothesis import strategies as st
from transformers import (
    OpenAIGPTConfig,
    OpenAIGPTForSequenceClassification,
    OpenAIGPTLMHeadModel,
    OpenAIGPTModel,
)

from tests.parity.families.family import FamilyTests
from tests.parity.families.harness import check

CONFIGS = {
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


def config_of(**values) -> OpenAIGPTConfig:
    return OpenAIGPTConfig(**values, pad_token_id=0, num_labels=4)


def check_gpt(model_class, config, directory, **options):
    """Padding on the left is tried with the usual class alone: the references with other heads count positions from there."""
    sides = ("right", "left") if model_class is OpenAIGPTLMHeadModel else ("right",)
    return check(model_class, config, directory, sides=sides, **options)


class TestOpenAIGPT(FamilyTests):
    model_class = OpenAIGPTLMHeadModel
    config = staticmethod(config_of)
    configs = CONFIGS
    check = staticmethod(check_gpt)
    others = [(OpenAIGPTModel, {}), (OpenAIGPTForSequenceClassification, {})]
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
            vocab_size=data.draw(st.integers(5, 90), "vocab_size"),
            n_embd=heads * data.draw(st.integers(3, 9), "head_dim"),
            n_layer=data.draw(st.integers(1, 4), "layers"),
            n_head=heads,
            n_positions=data.draw(st.integers(5, 40), "context_length"),
            afn=data.draw(st.sampled_from(["gelu", "relu", "silu", "swish"]), "activation"),
            layer_norm_epsilon=data.draw(st.sampled_from([1e-5, 1e-3, 1e-2]), "eps"),
            tie_word_embeddings=data.draw(st.booleans(), "tied"),
        )
