"""StarCoder2 (Lozhkov et al., 2024): ``Starcoder2Config``, ``Starcoder2Model`` and its heads: Llama with layer norms and biases."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.blocks import mlp
from zoo.families.common.decoders import layer_norm
from zoo.families.common.family import Family
from zoo.families.common.heads import decoder_classes
from zoo.families.common.llama_like import LlamaFields, layer_modules, llama_tensors
from zoo.families.common.windowed_layers import SingleWindow

_FIELDS = LlamaFields(
    vocab_size=49152, hidden_size=3072, intermediate_size=12288, layers=30, heads=24, kv_heads=2, context=4096
)
_BIAS = "use_bias"
_LAYER = {"mlp.c_fc": "feed_forward.up", "mlp.c_proj": "feed_forward.down"}

FAMILIES = (
    Family(
        "starcoder2",
        llama_tensors("starcoder2", *layer_modules(_LAYER), without=("mlp",)),
        _FIELDS.body(
            norm=layer_norm("norm_epsilon"),
            attention={
                "bias": f.Bias(_BIAS, default=True),
                "window": SingleWindow(_FIELDS.depth, default=None),
            },
            feed_forward=mlp(_FIELDS.hidden, "gelu_pytorch_tanh", bias=f.Bool(_BIAS, default=True)),
            dropout=f.Float("residual_dropout", default=0.0),
            more={"embedding": {"dropout": f.Float("embedding_dropout", default=0.0)}},
        ),
        decoder_classes("Starcoder2", tied=True, without=("ForQuestionAnswering",)),
    ),
)
