"""OPT (Zhang et al., 2022): ``OPTConfig``."""

from __future__ import annotations

from typing import Any

from specs.model import Model
from specs.position import Learned
from zoo.configs.activations import read_activation, write_activation
from zoo.configs.config import Config
from zoo.configs.decoders import attention_of, mlp_of, only_block, stack_of, std_of
from zoo.configs.family import ConfigFamily, Data, HeadClass, UnfitError
from zoo.configs.heads import decoder_classes, language_modeling

_OFFSET = 2


def _width(config: Config) -> tuple[int, int]:
    """d_model, and the width of the embedding."""
    d_model: int = config.int("hidden_size", default=768)
    return d_model, config.int("word_embed_proj_dim", default=d_model)


def _read(config: Config, class_name: str) -> Data:
    d_model, width = _width(config)
    if width != d_model and class_name != "OPTForCausalLM":
        config.refuse(
            "word_embed_proj_dim",
            f"must be hidden_size, which is {d_model}: {class_name} with a projection after the last layer is not modelled",
            "OPTForCausalLM is: set architectures",
        )
    bias = config.bool("enable_bias", default=True)
    affine = config.bool("layer_norm_elementwise_affine", default=True)
    before = config.bool("do_layer_norm_before", default=True)
    removed = config.bool("_remove_final_layer_norm", default=False)
    dropout = config.float("dropout", default=0.1)
    embedding: Data = {}
    if width != d_model:
        embedding = {"width": width, "projection": {"bias": False, "place": "first"}}
    config.ignore("layerdrop", "activation_dropout")
    return {
        "architecture": "decoder",
        "vocab_size": config.int("vocab_size", default=50272),
        "d_model": d_model,
        "context_length": config.int("max_position_embeddings", default=2048),
        "position": {"kind": "learned", "offset": _OFFSET},
        "embedding": embedding,
        "decoder": {
            "layers": config.layers("num_hidden_layers", default=12),
            "block": {
                "kind": "pre_norm" if before else "post_norm",
                "norm": {"kind": "layer_norm", "eps": 1e-5, "weight": affine, "bias": affine},
                "attention": {
                    "kind": "multi_head",
                    "heads": config.int("num_attention_heads", default=12),
                    "bias": bias,
                    "dropout": config.float("attention_dropout", default=0.0),
                },
                "feed_forward": {
                    "kind": "mlp",
                    "hidden": config.int("ffn_dim", default=3072),
                    "activation": read_activation(config, "activation_function", "relu"),
                    "bias": bias,
                },
                "dropout": dropout,
            },
            "final_norm": before and not removed,
        },
        "initialization": {"kind": "normal", "std": config.float("init_std", default=0.02)},
    }


def _write(model: Model) -> Data:
    block, stack = only_block(model), stack_of(model)
    attention, feed_forward = attention_of(block), mlp_of(block)
    if not isinstance(model.position_of(stack), Learned):
        raise UnfitError(f"position kind {model.position.kind}")
    before = not block.output_is_normalised
    return {
        "vocab_size": model.vocab_size,
        "hidden_size": model.d_model,
        "word_embed_proj_dim": model.embedding_width,
        "num_hidden_layers": stack.depth,
        "num_attention_heads": attention.heads,
        "ffn_dim": feed_forward.hidden,
        "activation_function": write_activation(feed_forward.activation),
        "max_position_embeddings": model.context_length,
        "do_layer_norm_before": before,
        "_remove_final_layer_norm": before and not stack.ends_with_norm,
        "enable_bias": attention.bias.query,
        "layer_norm_elementwise_affine": getattr(block.norm, "weight", True),
        "dropout": block.dropout,
        "attention_dropout": attention.dropout,
        "init_std": std_of(model).get("initializer_range", 0.02),
    }


_TIED = language_modeling(tied=True)


def _scores(config: Config) -> Data:
    d_model, width = _width(config)
    return {**_TIED.read(config), **({"projection": True} if width != d_model else {})}


def _classes() -> dict[str, Any]:
    classes = decoder_classes("OPT", tied=True, without=("ForTokenClassification",))
    return {**classes, "OPTForCausalLM": HeadClass("language_modeling", _scores, _TIED.write)}


FAMILIES = (ConfigFamily("opt", _read, _write, _classes()),)
