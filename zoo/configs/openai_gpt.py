"""GPT (Radford et al., 2018): ``OpenAIGPTConfig``."""

from __future__ import annotations

from specs.model import Model
from zoo.configs.config import Config
from zoo.configs.decoders import attention_of, eps_of, mlp_of, only_block, stack_of, std_of, tokens_of
from zoo.configs.family import ConfigFamily, Data, HeadClass, UnfitError
from zoo.configs.heads import BODY, SUMMARY, language_modeling, last_token_classification, write_labels

_ACTIVATIONS = {"gelu": "gelu_tanh", "relu": "relu", "silu": "silu", "swish": "silu"}
"""The reference has no others, and its "gelu" is the tanh approximation."""


def _read(config: Config, class_name: str) -> Data:
    d_model = config.int("n_embd", "hidden_size", default=768)
    dropout = config.float("resid_pdrop", default=0.1)
    config.must("n_special", 0, "tokens beyond vocab_size are of old releases: count them in vocab_size")
    config.ignore("n_ctx", "predict_special_tokens")
    config.ignore(*SUMMARY)
    return {
        "architecture": "decoder",
        "vocab_size": config.int("vocab_size", default=40478),
        "d_model": d_model,
        "context_length": config.int("n_positions", "max_position_embeddings", default=512),
        "position": {"kind": "learned"},
        "embedding": {"dropout": config.float("embd_pdrop", default=0.1)},
        "decoder": {
            "layers": config.layers("n_layer", "num_hidden_layers", default=12),
            "block": {
                "kind": "post_norm",
                "norm": {"kind": "layer_norm", "eps": config.float("layer_norm_epsilon", default=1e-5)},
                "attention": {
                    "kind": "multi_head",
                    "heads": config.int("n_head", "num_attention_heads", default=12),
                    "dropout": config.float("attn_pdrop", default=0.1),
                },
                "feed_forward": {
                    "kind": "mlp",
                    "hidden": 4 * d_model,
                    "activation": config.choice("afn", _ACTIVATIONS, "gelu"),
                },
                "dropout": dropout,
            },
        },
        "initialization": {"kind": "normal", "std": config.float("initializer_range", default=0.02)},
    }


def _write(model: Model) -> Data:
    block = only_block(model)
    attention, activation = attention_of(block), mlp_of(block).activation
    if activation not in _ACTIVATIONS.values():
        raise UnfitError(f"activation {activation}")
    return {
        "vocab_size": model.vocab_size,
        "n_embd": model.d_model,
        "n_layer": stack_of(model).depth,
        "n_head": attention.heads,
        "n_positions": model.context_length,
        "afn": next(theirs for theirs, ours in _ACTIVATIONS.items() if ours == activation),
        "layer_norm_epsilon": eps_of(block.norm),
        "resid_pdrop": block.dropout,
        "attn_pdrop": attention.dropout,
        "embd_pdrop": tokens_of(model).dropout,
        **std_of(model),
    }


CLASSES = {
    "OpenAIGPTLMHeadModel": language_modeling(tied=True),
    "OpenAIGPTModel": BODY,
    "OpenAIGPTForSequenceClassification": HeadClass(
        "classification", last_token_classification, write_labels
    ),
}

FAMILIES = (ConfigFamily("openai-gpt", _read, _write, CLASSES),)
