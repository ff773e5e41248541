"""GPT-NeoX (Black et al., 2022) and Pythia (Biderman et al., 2023): ``GPTNeoXConfig``."""

from __future__ import annotations

from specs.block import Parallel
from specs.model import Model
from zoo.configs.activations import read_activation
from zoo.configs.config import Config
from zoo.configs.decoders import attention_of, eps_of, mlp_of, only_block, stack_of, write_sizes
from zoo.configs.family import ConfigFamily, Data
from zoo.configs.heads import decoder_classes
from zoo.configs.rope import read_rope, rope_of, rotated_part, write_rope


def _read(config: Config, class_name: str) -> Data:
    d_model = config.int("hidden_size", default=6144)
    heads = config.int("num_attention_heads", default=64)
    context = config.int("max_position_embeddings", default=2048)
    dropout = config.float("hidden_dropout", default=0.0)
    parallel = config.bool("use_parallel_residual", default=True)
    config.must("is_decoder", False, "which the reference itself does not look at")
    config.ignore("classifier_dropout", "attention_probs_dropout_prob", "hidden_dropout_prob")
    return {
        "architecture": "decoder",
        "vocab_size": config.int("vocab_size", default=50432),
        "d_model": d_model,
        "context_length": context,
        "position": read_rope(config, width=d_model // heads, context=context, fraction=0.25),
        "embedding": {"dropout": dropout},
        "decoder": {
            "layers": config.layers("num_hidden_layers", default=44),
            "block": {
                **({"kind": "parallel", "norms": "separate"} if parallel else {"kind": "pre_norm"}),
                "norm": {"kind": "layer_norm", "eps": config.float("layer_norm_eps", default=1e-5)},
                "attention": {
                    "kind": "multi_head",
                    "heads": heads,
                    "bias": config.bool("attention_bias", default=True),
                    "dropout": config.float("attention_dropout", default=0.0),
                },
                "feed_forward": {
                    "kind": "mlp",
                    "hidden": config.int("intermediate_size", default=24576),
                    "activation": read_activation(config, "hidden_act", "gelu"),
                },
                "dropout": dropout,
            },
        },
        "initialization": {"kind": "normal", "std": config.float("initializer_range", default=0.02)},
    }


def _write(model: Model) -> Data:
    block = only_block(model)
    attention = attention_of(block)
    rope = rope_of(model.position_of(stack_of(model)))
    width = attention.head_width(model.d_model)
    return {
        **write_sizes(model, block, mlp_of(block)),
        "rotary_pct": rotated_part(rope, width),
        "rotary_emb_base": rope.theta,
        "rope_scaling": write_rope(rope, width=width)["rope_scaling"],
        "use_parallel_residual": isinstance(block, Parallel),
        "attention_bias": attention.bias.query,
        "layer_norm_eps": eps_of(block.norm),
        "hidden_dropout": block.dropout,
        "attention_dropout": attention.dropout,
    }


FAMILIES = (ConfigFamily("gpt_neox", _read, _write, decoder_classes("GPTNeoX", tied=False)),)
