"""BLOOM (BigScience, 2022): ``BloomConfig``."""

from __future__ import annotations

from specs.model import Model
from specs.position import Alibi
from zoo.configs.config import Config
from zoo.configs.decoders import attention_of, eps_of, mlp_of, only_block, stack_of, std_of
from zoo.configs.family import ConfigFamily, Data, UnfitError
from zoo.configs.heads import decoder_classes


def _read(config: Config, class_name: str) -> Data:
    d_model = config.int("n_embed", "hidden_size", default=64)
    norm = {"kind": "layer_norm", "eps": config.float("layer_norm_epsilon", default=1e-5)}
    config.must(
        "apply_residual_connection_post_layernorm", False, "residuals after the norm are not modelled"
    )
    config.must("n_inner", 4 * d_model, "the reference has no other width")
    config.ignore("slow_but_exact", "attention_softmax_in_fp32", "masked_softmax_fusion")
    config.ignore("bias_dropout_fusion", "skip_bias_add", "skip_bias_add_qkv", "offset_alibi")
    return {
        "architecture": "decoder",
        "vocab_size": config.int("vocab_size", default=250880),
        "d_model": d_model,
        "context_length": config.int("seq_length"),
        "position": {"kind": "alibi"},
        "embedding": {"norm": norm},
        "decoder": {
            "layers": config.layers("n_layer", "num_hidden_layers", default=2),
            "block": {
                "kind": "pre_norm",
                "norm": norm,
                "attention": {
                    "kind": "multi_head",
                    "heads": config.int("n_head", "num_attention_heads", default=8),
                    "dropout": config.float("attention_dropout", default=0.0),
                },
                "feed_forward": {"kind": "mlp", "hidden": 4 * d_model, "activation": "gelu_tanh"},
                "dropout": config.float("hidden_dropout", default=0.0),
            },
        },
        "initialization": {"kind": "normal", "std": config.float("initializer_range", default=0.02)},
    }


def _write(model: Model) -> Data:
    block = only_block(model)
    attention = attention_of(block)
    mlp_of(block)
    if not isinstance(model.position_of(stack_of(model)), Alibi):
        raise UnfitError(f"position kind {model.position.kind}")
    length = {} if model.context_length is None else {"seq_length": model.context_length}
    return {
        "vocab_size": model.vocab_size,
        "hidden_size": model.d_model,
        "n_layer": stack_of(model).depth,
        "n_head": attention.heads,
        **length,
        "layer_norm_epsilon": eps_of(block.norm),
        "hidden_dropout": block.dropout,
        "attention_dropout": attention.dropout,
        **std_of(model),
    }


FAMILIES = (ConfigFamily("bloom", _read, _write, decoder_classes("Bloom", tied=True)),)
