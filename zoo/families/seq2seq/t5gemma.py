"""T5Gemma (Zhang et al., 2025): ``T5GemmaConfig``, ``T5GemmaModel``, ``T5GemmaEncoderModel`` and their heads.

Gemma 2's layers as an encoder and as a decoder that attends to it, each with a config and a token table of its own. The encoder of
diffusion models is stored without the rest: ``T5GemmaModuleConfig``, ``T5GemmaEncoder``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from specs.model.model import Model
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import BODY, Labels, language_modeling, token_classes
from zoo.families.common.llama_like import LlamaFields
from zoo.families.common.parts import decoder_of, encoder_of
from zoo.families.common.template import Data, Field, FieldContext, UnfitError, write
from zoo.families.common.tensors import Rule, Tensors, modules, projections, same, weights
from zoo.families.decoders.gemma import ACTIVATION, CAP, SCALE, WINDOW, gemma_body, windows

_FIELDS = LlamaFields(
    vocab_size=256000, hidden_size=2304, intermediate_size=9216, layers=26, heads=8, kv_heads=4, head_dim=256,
    context=8192,
)  # fmt: skip
_MODULE = "T5GemmaEncoder"
"""The class of a stack alone, which is an encoder."""
_DROPOUTS = ("dropout_rate", "attention_dropout")
"""Fields that the whole config states for both stacks, whatever theirs say."""

_BOTH_SIDES = f.Mapped(WINDOW, lambda window: window and 2 * window, lambda window: window and window // 2)
"""The window of an encoder: as many tokens on either side."""


def _module(architecture: str, window: Field) -> Family:
    """The family of the config of one of the stacks."""
    body = gemma_body(
        _FIELDS,
        ACTIVATION,
        architecture=architecture,
        kind="sandwich",
        attention={"scale": SCALE, "softcap": f.Float("attn_logit_softcapping", default=50.0, null=True)},
        dropout=f.Float("dropout_rate", default=0.0),
        varies=(windows(2, window),),
    )
    return Family(
        "t5_gemma_module",
        Tensors("t5gemma", ()),
        body,
        {_MODULE: BODY},
        ignored=(CAP, "hidden_act", "is_decoder", "cross_attention_hidden_size", "classifier_dropout_rate"),
    )


_MODULES = {"encoder": _module("encoder", _BOTH_SIDES), "decoder": _module("decoder", WINDOW)}
_SOFTCAP = f.Float(CAP, default=30.0, null=True)
_OWN = ("d_model", "context_length", "position", "embedding")
"""Keys that the encoder states where it differs."""


class _T5Gemma(Family):
    """A config that holds one of each stack; with ``is_encoder_decoder`` false, classes have the encoder alone."""

    def spec(self, config: Config, class_name: str) -> Data:
        data = super().spec(config, class_name)
        if self.classes[class_name].kind == "language_modeling":
            data["head"]["softcap"] = _SOFTCAP.read(config.part("decoder") or Config({}, config.where))
        return data

    def body_spec(self, config: Config, class_name: str) -> Data:
        both = config.bool("is_encoder_decoder", default=True)
        if self.classes[class_name].kind in ("none", "language_modeling"):
            both = not class_name.endswith("EncoderModel")
            config.must("is_encoder_decoder", both, f"{class_name} is built so")
        config.ignore("vocab_size", "initializer_range", *self.ignored)
        encoder, decoder = self._part(config, "encoder"), self._part(config, "decoder")
        data = _MODULES["encoder"].body_spec(encoder, _MODULE)
        if not both:
            decoder.ignore(*decoder.data)
            return data
        said = _MODULES["decoder"].body_spec(decoder, _MODULE)
        if data["vocab_size"] != said["vocab_size"]:
            encoder.refuse("vocab_size", f"must be {said['vocab_size']}, as in the decoder")
        own = {key: data[key] for key in _OWN if data[key] != said[key]}
        table = {**said["embedding"], "own_table": True}
        return {
            **said,
            "architecture": "encoder-decoder",
            "encoder": {**data["encoder"], **own},
            "decoder": {**said["decoder"], "embedding": table},
        }

    def _part(self, config: Config, side: str) -> Config:
        """The config of a stack, with the dropout of the whole config."""
        part = config.inner(side, _DROPOUTS)
        part.data = {**part.data, **{name: config.float(name, default=0.0) for name in _DROPOUTS}}
        return part

    def config(self, model: Model, class_name: str) -> Data:
        data = super().config(model, class_name)
        if model.head.kind == "language_modeling":
            cap = getattr(model.head, "softcap", None)
            data["decoder"] |= write(_SOFTCAP, cap, FieldContext.of(model, "head"))
        return data

    def body_config(self, model: Model, class_name: str) -> Data:
        both = model.architecture == "encoder-decoder"
        alone = class_name.endswith("EncoderModel")
        if model.architecture not in ("encoder", "encoder-decoder") or (both and alone):
            raise UnfitError(f"architecture {model.architecture}")
        if self.classes[class_name].kind in ("none", "language_modeling") and not both and not alone:
            raise UnfitError(f"architecture {model.architecture}")
        parts = {"encoder": encoder_of(model) if both else model}
        parts |= {"decoder": decoder_of(model)} if both else {}
        written: dict[str, Any] = {}
        for side, part in parts.items():
            written[side] = _MODULES[side].body_config(part, _MODULE)
            del written[side]["architectures"]
        return {
            "architectures": [class_name],
            "model_type": self.model_type,
            "is_encoder_decoder": both,
            "vocab_size": model.vocab_size,
            **{name: written["encoder"].get(name, 0.0) for name in _DROPOUTS},
            **written,
        }


_NORMS = {"self_attn": "attention", "cross_attn": "cross_attention", "feedforward": "feed_forward"}


def _stack(side: str) -> tuple[Rule, ...]:
    """The rules of the layers of a stack, and of its final norm."""
    names = "q_proj k_proj v_proj o_proj"
    layer = {
        **projections("self_attn.", names),
        **projections("cross_attn.", names, "cross_attention"),
        "mlp.gate_proj": "feed_forward.gate",
        "mlp.up_proj": "feed_forward.up",
        "mlp.down_proj": "feed_forward.down",
    }
    norms = {f"pre_{theirs}_layernorm": f"{ours}_norm" for theirs, ours in _NORMS.items()}
    norms |= {f"post_{theirs}_layernorm": f"{ours}_output_norm" for theirs, ours in _NORMS.items()}
    return (
        *modules(layer, f"{side}.layers.{{layer}}.", f"{side}.blocks.{{layer}}."),
        *weights(norms, f"{side}.layers.{{layer}}.", f"{side}.blocks.{{layer}}."),
        same(f"{side}.norm.weight", f"{side}.final_norm.weight"),
    )


_SCORES = modules({"score.out_proj": "head.labels"})
_TENSORS = Tensors(
    "t5gemma",
    (
        same("encoder.embed_tokens.weight", "encoder_embedding.token.weight"),
        same("encoder.embed_tokens.weight", "embedding.token.weight"),
        same("decoder.embed_tokens.weight", "decoder_embedding.token.weight"),
        *_stack("encoder"),
        *_stack("decoder"),
    ),
    prefix="model.",
    outside=("lm_head.", "score."),
    heads={
        "language_modeling": (same("lm_head.out_proj.weight", "head.vocabulary.weight"),),
        "classification": _SCORES,
        "token_classification": _SCORES,
    },
    optional=("lm_head.*", "score.*"),
)
_DROPOUT = f.Float("classifier_dropout_rate", default=0.0)

FAMILIES = (
    _T5Gemma(
        "t5gemma",
        _TENSORS,
        classes={
            "T5GemmaForConditionalGeneration": language_modeling(tied=True, bias=False),
            "T5GemmaModel": BODY,
            "T5GemmaEncoderModel": BODY,
            "T5GemmaForSequenceClassification": HeadClass(
                "classification", {"labels": Labels(), "pooling": "last", "dropout": _DROPOUT}
            ),
            "T5GemmaForTokenClassification": token_classes(_DROPOUT),
        },
        ignored=("tie_word_embeddings", "classifier_dropout_rate"),
    ),
    replace(
        _MODULES["encoder"],
        tensors=Tensors(
            "t5_gemma_module",
            tuple(
                replace(rule, stored=rule.stored.removeprefix("encoder."))
                for rule in _TENSORS.rules
                if rule.stored.startswith("encoder.")
                and rule.parameters != ("encoder_embedding.token.weight",)
            ),
        ),
        fixed={"is_decoder": (False, "a decoder alone has nothing to attend to")},
    ),
)
