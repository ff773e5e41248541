"""T5 (Raffel et al., 2019), T5 1.1 and mT5: ``T5Config``, ``MT5Config``."""

from __future__ import annotations

from typing import Any

from specs.feed_forward import MLP, Gated
from specs.model import Model
from specs.position import RelativeBias
from zoo.configs.activations import ACTIVATIONS, write_activation
from zoo.configs.config import Config
from zoo.configs.decoders import attention_of, eps_of
from zoo.configs.family import ConfigFamily, Data, HeadClass, UnfitError
from zoo.configs.heads import BODY, token_classification, write_labels
from zoo.configs.seq2seq import end_of_sequence_classification


def _feed_forward(config: Config, default: str) -> Data:
    """``feed_forward_proj`` says gated or not, and the activation: "gated-gelu" is its tanh approximation."""
    stated = config.text("feed_forward_proj", default=default)
    config.ignore("dense_act_fn", "is_gated_act")  # which follow from it
    gated, word = stated.startswith("gated-"), stated.removeprefix("gated-")
    if word not in ACTIVATIONS:
        config.choice(
            "feed_forward_proj", {f"{form}{known}": None for form in ("", "gated-") for known in ACTIVATIONS}
        )
    return {
        "kind": "gated" if gated else "mlp",
        "hidden": config.int("d_ff", default=2048 if default == "relu" else 1024),
        "activation": "gelu_tanh" if stated == "gated-gelu" else ACTIVATIONS[word],
        "bias": False,
        "dropout": config.float("dropout_rate", default=0.1),
    }


def _reader(*, feed_forward: str, heads: int, layers: int, vocab_size: int) -> Any:
    def read(config: Config, class_name: str) -> Data:
        dropout = config.float("dropout_rate", default=0.1)
        config.must("is_decoder", False, "it is the decoder alone")
        config.ignore("classifier_dropout", "scale_decoder_outputs", "n_positions", "output_past")
        block = {
            "kind": "pre_norm",
            "norm": {"kind": "rms_norm", "eps": config.float("layer_norm_epsilon", default=1e-6)},
            "attention": {
                "kind": "multi_head",
                "heads": config.int("num_heads", default=heads),
                "head_dim": config.int("d_kv", default=64),
                "bias": False,
                "scale": 1.0,
                "dropout": dropout,
            },
            "feed_forward": _feed_forward(config, feed_forward),
            "dropout": dropout,
        }
        depth = config.layers("num_layers", default=layers)
        stacks: Data = {"encoder": {"layers": depth, "block": block}}
        decoder_depth = config.layers("num_decoder_layers", default=depth)
        if class_name.endswith(("EncoderModel", "ForTokenClassification")):
            architecture = "encoder"
        else:
            architecture = "encoder-decoder"
            stacks["decoder"] = {"layers": decoder_depth, "block": block}
        return {
            "architecture": architecture,
            "vocab_size": config.int("vocab_size", default=vocab_size),
            "d_model": config.int("d_model", default=512),
            "position": {
                "kind": "relative_bias",
                "buckets": config.int("relative_attention_num_buckets", default=32),
                "max_distance": config.int("relative_attention_max_distance", default=128),
            },
            "embedding": {"dropout": dropout},
            **stacks,
            "initialization": {"kind": "t5", "factor": config.float("initializer_factor", default=1.0)},
        }

    return read


def _write(model: Model) -> Data:
    if model.encoder is None or not isinstance(model.position, RelativeBias):
        raise UnfitError(
            f"architecture {model.architecture}"
            if model.encoder is None
            else f"position kind {model.position.kind}"
        )
    block = model.encoder.layer_blocks()[0]
    attention, feed_forward = attention_of(block), block.feed_forward
    if not isinstance(feed_forward, MLP | Gated):
        raise UnfitError(f"feed_forward kind {feed_forward.kind}")
    gated = isinstance(feed_forward, Gated)
    activation = write_activation(feed_forward.activation)
    if gated and feed_forward.activation == "gelu_tanh":
        activation = "gelu"
    elif gated and feed_forward.activation == "gelu":
        activation = "gelu_python"
    return {
        "vocab_size": model.vocab_size,
        "d_model": model.d_model,
        "d_kv": attention.head_width(model.d_model),
        "d_ff": feed_forward.hidden,
        "num_layers": model.encoder.depth,
        "num_decoder_layers": (model.decoder or model.encoder).depth,
        "num_heads": attention.heads,
        "relative_attention_num_buckets": model.position.buckets,
        "relative_attention_max_distance": model.position.max_distance,
        "dropout_rate": block.dropout,
        "layer_norm_epsilon": eps_of(block.norm),
        "feed_forward_proj": f"gated-{activation}" if gated else activation,
        "is_encoder_decoder": model.decoder is not None,
    }


def _scaled_if_tied() -> HeadClass:
    """T5 is tied and scaled, T5 1.1 neither: old configs say so in tie_word_embeddings, new ones in scale_decoder_outputs."""

    def read(config: Config) -> Data:
        old = config.bool("tie_word_embeddings", default=True)
        tied = config.bool("scale_decoder_outputs", default=old)
        return {"tie_embeddings": tied, "scale": "inverse_sqrt_d_model" if tied else None}

    def write(head: Any) -> Data:
        return {"tie_word_embeddings": head.tie_embeddings}

    return HeadClass("language_modeling", read, write)


def _unscaled_head() -> HeadClass:
    """mT5 has a matrix of its own, whatever newer configs say: where one is stored it counts."""

    def read(config: Config) -> Data:
        tied = config.bool("tie_word_embeddings", default=False) and not config.stores("lm_head.weight")
        return {"tie_embeddings": tied}

    def write(head: Any) -> Data:
        return {"tie_word_embeddings": head.tie_embeddings}

    return HeadClass("language_modeling", read, write)


def _classes(prefix: str, language_modeling: HeadClass) -> dict[str, HeadClass]:
    return {
        f"{prefix}ForConditionalGeneration": language_modeling,
        f"{prefix}WithLMHeadModel": language_modeling,
        f"{prefix}Model": BODY,
        f"{prefix}EncoderModel": BODY,
        f"{prefix}ForSequenceClassification": end_of_sequence_classification(labels=2),
        f"{prefix}ForTokenClassification": HeadClass("token_classification", _of_tokens, _write_of_tokens),
        f"{prefix}ForQuestionAnswering": HeadClass("question_answering"),
    }


def _of_tokens(config: Config) -> Data:
    return {**token_classification(config), "dropout": config.float("classifier_dropout", default=0.0)}


def _write_of_tokens(head: Any) -> Data:
    return {**write_labels(head), "classifier_dropout": head.dropout}


T5 = ConfigFamily(
    "t5",
    _reader(feed_forward="relu", heads=8, layers=6, vocab_size=32128),
    _write,
    _classes("T5", _scaled_if_tied()),
)
MT5 = ConfigFamily(
    "mt5",
    _reader(feed_forward="gated-gelu", heads=6, layers=8, vocab_size=250112),
    _write,
    _classes("MT5", _unscaled_head()),
)
FAMILIES = (T5, MT5)
