"""GPT-2 (Radford et al., 2019): ``GPT2Config``."""

from __future__ import annotations

from specs.model import Model
from zoo.configs.activations import read_activation, write_activation
from zoo.configs.config import Config
from zoo.configs.decoders import attention_of, eps_of, mlp_of, only_block, stack_of, std_of, tokens_of
from zoo.configs.family import ConfigFamily, Data, HeadClass
from zoo.configs.heads import (
    BODY,
    SUMMARY,
    language_modeling,
    last_token_classification,
    read_decoder_tokens,
    write_decoder_tokens,
    write_labels,
)


def _read(config: Config, class_name: str) -> Data:
    d_model = config.int("n_embd", "hidden_size", default=768)
    dropout = config.float("resid_pdrop", default=0.1)
    attention = {
        "kind": "multi_head",
        "heads": config.int("n_head", "num_attention_heads", default=12),
        "dropout": config.float("attn_pdrop", default=0.1),
    }
    if not config.bool("scale_attn_weights", default=True):
        attention["scale"] = 1.0
    config.must("scale_attn_by_inverse_layer_idx", False, "scores scaled by layer are not modelled")
    config.must("add_cross_attention", False, "GPT-2 with an encoder is not modelled")
    config.ignore("n_ctx", "reorder_and_upcast_attn", "gradient_checkpointing")
    config.ignore(*SUMMARY)
    return {
        "architecture": "decoder",
        "vocab_size": config.int("vocab_size", default=50257),
        "d_model": d_model,
        "context_length": config.int("n_positions", "max_position_embeddings", default=1024),
        "position": {"kind": "learned"},
        "embedding": {"dropout": config.float("embd_pdrop", default=0.1)},
        "decoder": {
            "layers": config.layers("n_layer", "num_hidden_layers", default=12),
            "block": {
                "kind": "pre_norm",
                "norm": {"kind": "layer_norm", "eps": config.float("layer_norm_epsilon", default=1e-5)},
                "attention": attention,
                "feed_forward": {
                    "kind": "mlp",
                    "hidden": config.int("n_inner", default=4 * d_model),
                    "activation": read_activation(config, "activation_function", "gelu_new"),
                },
                "dropout": dropout,
            },
        },
        "initialization": {
            "kind": "normal",
            "std": config.float("initializer_range", default=0.02),
            "depth_scaled": True,
        },
    }


def _write(model: Model) -> Data:
    block = only_block(model)
    attention, feed_forward = attention_of(block), mlp_of(block)
    return {
        "vocab_size": model.vocab_size,
        "n_embd": model.d_model,
        "n_layer": stack_of(model).depth,
        "n_head": attention.heads,
        "n_positions": model.context_length,
        "n_inner": feed_forward.hidden,
        "activation_function": write_activation(feed_forward.activation),
        "layer_norm_epsilon": eps_of(block.norm),
        "scale_attn_weights": attention.scale is None,
        "resid_pdrop": block.dropout,
        "attn_pdrop": attention.dropout,
        "embd_pdrop": tokens_of(model).dropout,
        **std_of(model),
    }


CLASSES = {
    "GPT2LMHeadModel": language_modeling(tied=True),
    "GPT2Model": BODY,
    "GPT2ForSequenceClassification": HeadClass("classification", last_token_classification, write_labels),
    "GPT2ForTokenClassification": HeadClass(
        "token_classification", read_decoder_tokens, write_decoder_tokens
    ),
    "GPT2ForQuestionAnswering": HeadClass("question_answering"),
}

FAMILIES = (ConfigFamily("gpt2", _read, _write, CLASSES),)
