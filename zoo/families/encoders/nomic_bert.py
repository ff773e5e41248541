"""Nomic BERT (Nussbaum et al., 2024): ``NomicBertConfig``, ``NomicBertModel`` and its heads.

BERT with rotary positions and gated feed-forwards, and without biases in its layers.  Its first releases, whose code was
their own, have GPT-2's names for the fields.
"""

from __future__ import annotations

from dataclasses import replace

from zoo.families.common import fields as f
from zoo.families.common.attention import per_head
from zoo.families.common.blocks import gated, multi_head
from zoo.families.common.config import Config
from zoo.families.common.decoders import query_key_value
from zoo.families.common.encoders import TokenTypes, classification, masked, masked_rules
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, SUMMARY, token_classes
from zoo.families.common.held import unfused
from zoo.families.common.layers import Layers
from zoo.families.common.llama_like import WHOLE_HEADS
from zoo.families.common.rope import RopeField, stated_parameters
from zoo.families.common.template import Data
from zoo.families.common.tensors import Tensors, affine, fused, modules, weights

_OLD_GATES = {"swiglu": "silu", "geglu": "gelu"}
"""The names of the first releases, and the activations of the gates."""


def _old_activation(config: Config) -> str:
    """The activation that the first releases name with the gates, or else the default."""
    if not config.has("activation_function"):
        return "silu"
    return config.choice("activation_function", _OLD_GATES)


class _NomicRope(RopeField):
    """Rotary positions, whose base has a name of its own in the first releases: the present class does not read it."""

    def read(self, config: Config) -> Data:
        parameters = stated_parameters(config)
        names = ("rope_theta", "rotary_emb_base") if config.has("n_embd") else ("rope_theta",)
        base = config.float(*names, default=self.theta)
        return self.read_parameters(config, parameters or Config({}, config.where), base)


_D_MODEL = f.Int("hidden_size", "n_embd", default=768)
_HEADS = f.Int("num_attention_heads", "n_head", default=12)
_HEAD_DIM = f.HeadWidth("head_dim", default=per_head(_D_MODEL, _HEADS))
_CONTEXT = f.ContextLength("max_position_embeddings", "n_positions", default=2048)
_NORM = {"kind": "layer_norm", "eps": f.Float("layer_norm_eps", "layer_norm_epsilon", default=1e-12)}
_ACTIVATION = f.Activation("hidden_act", f.Derived(_old_activation))
_DROPOUT = f.Float("hidden_dropout_prob", "resid_pdrop", default=0.0)
_CLASSIFIER_DROPOUT = f.Float("classifier_dropout", default=_DROPOUT)
_BODY = {
    "architecture": "encoder",
    "vocab_size": f.Int("vocab_size", default=30528),
    "d_model": _D_MODEL,
    "context_length": _CONTEXT,
    "position": _NomicRope(_HEAD_DIM, _CONTEXT, theta=1000.0, whole=WHOLE_HEADS),
    "embedding": {
        "token_types": TokenTypes("type_vocab_size", default=2),
        "norm": _NORM,
        "dropout": f.Float("hidden_dropout_prob", "embd_pdrop", default=0.0),
    },
    "encoder": Layers(
        f.Depth("num_hidden_layers", "n_layer", default=12),
        {
            "kind": "post_norm",
            "norm": _NORM,
            "attention": multi_head(
                _HEADS,
                dropout=f.Float("attention_probs_dropout_prob", "attn_pdrop", default=0.0),
                head_dim=_HEAD_DIM,
                bias=False,
            ),
            "feed_forward": gated(
                f.Int("intermediate_size", "n_inner", default=3072), _ACTIVATION, bias=False
            ),
            "dropout": _DROPOUT,
        },
    ),
    "initialization": f.normal(),
}

_STORED, _BLOCK = "encoder.layers.{layer}.", "encoder.blocks.{layer}."
_TENSORS = Tensors(
    "nomic_bert",
    (
        *weights(
            {"word_embeddings": "token", "token_type_embeddings": "token_type"}, "embeddings.", "embedding."
        ),
        *affine("emb_ln", "embedding.norm"),
        *fused(f"{_STORED}attn.Wqkv", query_key_value("encoder.blocks.{layer}")),
        *weights(
            {
                "attn.out_proj": "attention.output",
                "mlp.fc11": "feed_forward.up",
                "mlp.fc12": "feed_forward.gate",
                "mlp.fc2": "feed_forward.down",
            },
            _STORED,
            _BLOCK,
        ),
        *modules({"norm1": "attention_norm", "norm2": "feed_forward_norm"}, _STORED, _BLOCK),
    ),
    prefix="nomic_bert.",
    outside=("cls.", "classifier."),
    heads={
        "masked_language_modeling": masked_rules(
            "cls.predictions.transform.dense",
            "cls.predictions.transform.layer_norm",
            "cls.predictions.decoder",
            "cls.predictions.bias",
        ),
        "classification": modules({"pooler.dense": "head.dense", "classifier": "head.labels"}),
        "token_classification": affine("classifier", "head.labels"),
    },
    optional=("pooler.*", "cls.*", "classifier.*"),
)

_IN_MEMORY = unfused(
    _TENSORS,
    {
        f"{_STORED[8:]}self_attn.{part[0]}_proj": f"{_BLOCK}attention.{part}"
        for part in ("query", "key", "value")
    },
    (r"encoder\.layers", "layers"),
    ("emb_ln", "embeddings.LayerNorm"),
    (r"attn\.out_proj", "self_attn.o_proj"),
    ("fc11", "up_proj"),
    ("fc12", "gate_proj"),
    ("fc2", "down_proj"),
    ("norm1", "post_attention_layernorm"),
    ("norm2", "post_mlp_layernorm"),
)

_UNLIKE = "the present class has no field for it"
_NEVER = (
    "causal", "mlp_fc1_bias", "mlp_fc2_bias", "parallel_block", "prenorm", "qkv_proj_bias", "rotary_emb_interleaved",
    "scale_attn_by_inverse_layer_idx", "use_rms_norm",
)  # fmt: skip
_OF_CODE = (
    "dense_seq_output", "fused_bias_fc", "fused_dropout_add_ln", "max_trained_positions", "pad_vocab_size_multiple",
    "parallel_block_tied_norm", "reorder_and_upcast_attn", "use_flash_attn", "use_xentropy", *SUMMARY,
)  # fmt: skip

FAMILIES = (
    Family(
        "nomic_bert",
        replace(_TENSORS, other=_IN_MEMORY),
        _BODY,
        {
            "NomicBertModel": BODY,
            "NomicBertForMaskedLM": masked(_ACTIVATION, _NORM),
            "NomicBertForSequenceClassification": classification("tanh", _CLASSIFIER_DROPOUT),
            "NomicBertForTokenClassification": token_classes(_CLASSIFIER_DROPOUT),
        },
        fixed={
            **dict.fromkeys(_NEVER, (False, _UNLIKE)),
            **dict.fromkeys(("rotary_emb_scale_base", "rotary_scaling_factor"), (None, _UNLIKE)),
            "rotary_emb_fraction": (1.0, WHOLE_HEADS),
            "scale_attn_weights": (True, _UNLIKE),
        },
        ignored=("activation_function", "classifier_dropout", *_OF_CODE),
    ),
)
