"""T5 (Raffel et al., 2019), T5 1.1, mT5 and UMT5 (Chung et al., 2023): ``T5Config``, ``MT5Config``, ``UMT5Config`` and their models.

A layer's parts are stored by number: self-attention 0, in the decoder cross-attention 1, feed-forward last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from specs.kinds.feed_forward import TwoLayer
from zoo.families.common import fields as f
from zoo.families.common.blocks import multi_head
from zoo.families.common.config import Config
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import BODY, QUESTION_ANSWERING, token_classes
from zoo.families.common.layers import Layers, LayerVariation
from zoo.families.common.seq2seq import CLASSIFICATION, SHARED, end_of_sequence_classification
from zoo.families.common.template import Data, Field, FieldContext, Template
from zoo.families.common.tensors import Rule, Tensors, modules, same, weights


class _GatedOrNot(Field):
    """The kind of the feed-forward and its activation in one word; "gated-gelu" means the tanh approximation.

    Fields of their own, which later versions write beside the word, go before it.
    """

    component = TwoLayer

    def __init__(self, word: str) -> None:
        self.word = word

    def read(self, config: Config) -> Data:
        projection = config.text("feed_forward_proj", default=self.word)
        gated, word = projection.startswith("gated-"), projection.removeprefix("gated-")
        if word not in f.ACTIVATIONS:
            known = {f"{form}{name}": None for form in ("", "gated-") for name in f.ACTIVATIONS}
            config.choice("feed_forward_proj", known)
        default = "gelu_new" if projection == "gated-gelu" else word
        activation = config.choice("dense_act_fn", f.ACTIVATIONS, default)
        gated = config.bool("is_gated_act", default=gated)
        return {"kind": "gated" if gated else "mlp", "activation": activation}

    def write(self, value: Any, context: FieldContext) -> Data:
        (word,) = f.Activation("feed_forward_proj", "").write(value.activation, context).values()
        if value.kind == "gated":
            word = {"gelu_tanh": "gelu", "gelu": "gelu_python"}.get(value.activation, word)
            word = f"gated-{word}"
        return {"feed_forward_proj": word}


DROPOUT = f.Float("dropout_rate", default=0.1)
_SCORES = "lm_head.weight"


@dataclass(frozen=True)
class T5Fields:
    """The fields of a config with T5's names, with a family's defaults.

    ``varies`` are the respects in which the layers of a stack vary, ``per_layer`` says that each has its own biases, and
    ``encoder_attention`` are further keys of the encoder's attention.
    """

    feed_forward: Template
    heads: int
    layers: int
    vocab_size: int
    d_model: int = 512
    varies: Mapping[str, Sequence[LayerVariation]] = field(default_factory=dict)
    per_layer: bool = False
    encoder_attention: Mapping[str, Template] = field(default_factory=dict)

    def body(self, *, decoder: bool = True, **more: Template) -> Template:
        """The template of a body; ``decoder`` is false for classes with only the encoder, and ``more`` are keys of the model."""
        return {
            "architecture": "encoder-decoder" if decoder else "encoder",
            "*": f.Stated(is_encoder_decoder=decoder),
            "vocab_size": f.Int("vocab_size", default=self.vocab_size),
            "d_model": f.Int("d_model", default=self.d_model),
            **more,
            "position": {
                "kind": "relative_bias",
                "buckets": f.Int("relative_attention_num_buckets", default=32),
                "max_distance": f.Int("relative_attention_max_distance", default=128),
                "per_layer": self.per_layer,
            },
            "embedding": {"dropout": DROPOUT},
            **self._stacks(decoder=decoder),
            "initialization": f.IfThere({"kind": "t5", "factor": f.Float("initializer_factor", default=1.0)}),
        }

    def _stacks(self, *, decoder: bool) -> dict[str, Template]:
        depth = f.Depth("num_layers", default=self.layers)
        stacks = {"encoder": self._layers("encoder", depth, **self.encoder_attention)}
        if decoder:
            stacks["decoder"] = self._layers("decoder", f.Depth("num_decoder_layers", default=depth))
        return stacks

    def _layers(self, stack: str, depth: f.Depth, **attention: Template) -> Template:
        block: dict[str, Template] = {
            "kind": "pre_norm",
            "norm": {"kind": "rms_norm", "eps": f.Float("layer_norm_epsilon", default=1e-6)},
            "attention": multi_head(
                f.Int("num_heads", default=self.heads),
                dropout=DROPOUT,
                head_dim=f.HeadWidth("d_kv", default=64),
                bias=False,
                scale=1.0,
                **attention,
            ),
            "feed_forward": self.feed_forward,
            "dropout": DROPOUT,
        }
        return Layers(depth, block, self.varies.get(stack, ()))


def _tied(config: Config) -> bool:
    """Whether an old config ties and scales, which one field states."""
    tied: bool = config.bool("tie_word_embeddings", default=True, null=True)
    return tied


_SCALED = f.Bool("scale_decoder_outputs", default=f.Derived(_tied))
_SCALE = "inverse_sqrt_d_model"
_SCALED_IF_TIED: dict[str, Template] = {
    "tie_embeddings": f.Computed(
        f.Bool("tie_word_embeddings"),
        lambda value, config: _SCALED.read(config) or config.lacks(_SCORES),
    ),
    "scale": f.Derived(lambda config: _SCALE if _SCALED.read(config) else None),
}
"""Tying and scaling: T5 has both, T5 1.1 neither, as stated by tie_word_embeddings in old configs and by scale_decoder_outputs in
new ones."""
_SCALED_AND_TIED_UNLESS_STORED: dict[str, Template] = {
    "tie_embeddings": f.Computed(
        f.Bool("tie_word_embeddings"), lambda value, config: _tied(config) and not config.stores(_SCORES)
    ),
    "scale": f.Computed(
        _SCALED,
        lambda scaled, config: _SCALE if scaled else None,
        lambda scale, context: scale is not None,
    ),
}
"""Tying and scaling of UMT5: transformers 5 ties where no output matrix is stored, and scales unless a field of its own says
otherwise; before, tie_word_embeddings stated both."""
_TIED_UNLESS_STORED = f.Computed(
    f.Bool("tie_word_embeddings", default=False),
    lambda tied, config: tied and not config.stores(_SCORES),
)
"""Tying of mT5: a stored output matrix overrides newer configs, which claim that it is tied."""


def _attention(stored: str, module: str) -> tuple[Rule, ...]:
    return weights({"q": "query", "k": "key", "v": "value", "o": "output"}, f"{stored}.", f"{module}.")


def _stack(stack: str, feed_forward: str, attention: str = "SelfAttention") -> tuple[Rule, ...]:
    """The tensors of a stack; ``feed_forward`` and ``attention`` are the stored names of a layer's parts."""
    layer, block = f"{stack}.block.{{layer}}.layer", f"{stack}.blocks.{{layer}}"
    dense, ours = f"{layer}.{feed_forward}", f"{block}.feed_forward"
    bias = f"{layer}.0.{attention}.relative_attention_bias.weight"
    norms = {
        f"{layer}.0.layer_norm": f"{block}.attention_norm",
        f"{dense.rpartition('.')[0]}.layer_norm": f"{block}.feed_forward_norm",
        f"{stack}.final_layer_norm": f"{stack}.final_norm",
    }
    return (
        same(bias.format(layer=0), f"{stack}.position.table.weight"),
        same(bias, f"{block}.attention.position.table.weight"),
        *weights(norms),
        *_attention(f"{layer}.0.{attention}", f"{block}.attention"),
        same(f"{dense}.wi.weight", f"{ours}.up.weight"),
        same(f"{dense}.wi_0.weight", f"{ours}.gate.weight"),
        same(f"{dense}.wi_1.weight", f"{ours}.up.weight", beside=f"{ours}.gate.weight"),
        same(f"{dense}.wo.weight", f"{ours}.down.weight"),
    )


_CROSS, _OURS = "decoder.block.{layer}.layer.1", "decoder.blocks.{layer}"


def t5_tensors(name: str, feed_forward: str, *rules: Rule, attention: str = "SelfAttention") -> Tensors:
    """The tensors; ``feed_forward`` and ``attention`` are the names of those modules of a layer, the latter in the encoder, and
    ``rules`` are further ones."""
    return Tensors(
        name,
        (
            same("shared.weight", "encoder_embedding.token.weight", also=SHARED),
            same("shared.weight", "embedding.token.weight", also=SHARED),
            same("decoder.embed_tokens.weight", "decoder_embedding.token.weight"),
            *_stack("encoder", f"1.{feed_forward}", attention),
            *_stack("decoder", f"2.{feed_forward}"),
            same(f"{_CROSS}.layer_norm.weight", f"{_OURS}.cross_attention_norm.weight"),
            *_attention(f"{_CROSS}.EncDecAttention", f"{_OURS}.cross_attention"),
            *rules,
        ),
        heads={
            "language_modeling": (same("lm_head.weight", "head.vocabulary.weight"),),
            "classification": CLASSIFICATION,
            "token_classification": modules({"classifier": "head.labels"}),
            "question_answering": modules({"qa_outputs": "head.span"}),
        },
        head_prefixes={"classification": "transformer.", "token_classification": "transformer."},
        outside=("lm_head.", "classification_head.", "classifier.", "qa_outputs."),
        optional=("lm_head.weight", "classification_head.*", "classifier.*", "qa_outputs.*"),
        unused=("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",),
    )


_TENSORS = t5_tensors("t5", "DenseReluDense")
OF_CONFIG = (
    "classifier_dropout",
    "scale_decoder_outputs",
    "n_positions",
    "output_past",
    "num_decoder_layers",
)
"""Fields that do not change the spec."""

FIXED = {"is_decoder": (False, "it is the decoder alone")}


def t5_feed_forward(word: str, hidden: int) -> dict[str, Template]:
    """The keys of the feed-forward; ``word`` and ``hidden`` are the defaults."""
    return {
        "*": _GatedOrNot(word),
        "hidden": f.Int("d_ff", default=hidden),
        "bias": False,
        "dropout": DROPOUT,
    }


def _family(
    model_type: str, prefix: str, scores: dict[str, Template], *, word: str, hidden: int, **defaults: Any
) -> Family:
    language_modeling = HeadClass("language_modeling", scores)
    fields = T5Fields(t5_feed_forward(word, hidden), **defaults)
    encoder = fields.body(decoder=False)
    tokens = token_classes(f.Float("classifier_dropout", default=0.0))
    classes = {
        "ForConditionalGeneration": language_modeling,
        "WithLMHeadModel": language_modeling,
        "Model": BODY,
        "EncoderModel": HeadClass("none", body=encoder),
        "ForSequenceClassification": end_of_sequence_classification(labels=2),
        "ForTokenClassification": HeadClass(tokens.kind, tokens.head, encoder),
        "ForQuestionAnswering": QUESTION_ANSWERING,
    }
    return Family(
        model_type,
        _TENSORS,
        fields.body(),
        {f"{prefix}{name}": head for name, head in classes.items()},
        fixed=FIXED,
        ignored=OF_CONFIG,
    )


T5 = _family("t5", "T5", _SCALED_IF_TIED, word="relu", hidden=2048, heads=8, layers=6, vocab_size=32128)
MT5 = _family(
    "mt5",
    "MT5",
    {"tie_embeddings": _TIED_UNLESS_STORED},
    word="gated-gelu",
    hidden=1024,
    heads=6,
    layers=8,
    vocab_size=250112,
)
UMT5 = _family(
    "umt5",
    "UMT5",
    _SCALED_AND_TIED_UNLESS_STORED,
    word="gated-gelu",
    hidden=1024,
    heads=6,
    layers=8,
    vocab_size=250112,
    per_layer=True,
)
FAMILIES = (T5, MT5, UMT5)
