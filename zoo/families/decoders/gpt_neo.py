"""GPT-Neo (Black et al., 2021): ``GPTNeoConfig``, ``GPTNeoModel`` and its heads."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.blocks import mlp, multi_head
from zoo.families.common.config import Config
from zoo.families.common.decoders import decoder_tensors, layer_norm
from zoo.families.common.family import Family
from zoo.families.common.heads import SUMMARY, decoder_classes
from zoo.families.common.hybrid import LayersOf
from zoo.families.common.layers import Layers
from zoo.families.common.tensors import modules, projections, same


def _types(config: Config, depth: int) -> list[str]:
    """The types of all layers: ``attention_types`` lists them as [[[types], times], ...], unless ``attention_layers`` lists them one
    by one."""
    kinds: list[str] | None = config.list("attention_layers")
    if kinds is None:
        return _repeated(config, depth)
    config.ignore("attention_types")
    if not all(kind in ("global", "local") for kind in kinds):
        config.refuse("attention_layers", "must have only types global and local")
    if len(kinds) != depth:
        config.refuse(
            "attention_layers", f"must have an entry for each layer of num_layers, which is {depth}"
        )
    return kinds


def _repeated(config: Config, depth: int) -> list[str]:
    """The types of layers that ``attention_types`` lists."""
    groups = config.list("attention_types", default=[[["global", "local"], 12]])
    layers: list[str] = []
    for group in groups:
        if not (isinstance(group, list) and len(group) == 2 and isinstance(group[0], list)):
            config.refuse("attention_types", "must be a list of [[types], times]")
        if type(group[1]) is not int or not all(name in ["global", "local"] for name in group[0]):
            config.refuse("attention_types", "must have only types global and local")
        if len(group[0]) * group[1] > depth:
            config.refuse("attention_types", f"must cover num_layers, which is {depth}")
        layers += group[0] * group[1]
    if len(layers) != depth:
        config.refuse("attention_types", f"must cover num_layers, which is {depth}; it covers {len(layers)}")
    return layers


_D_MODEL = f.Int("hidden_size", default=2048)
_BODY = {
    "architecture": "decoder",
    "vocab_size": f.Int("vocab_size", default=50257),
    "d_model": _D_MODEL,
    "context_length": f.Int("max_position_embeddings", default=2048),
    "position": {"kind": "learned"},
    "embedding": {"dropout": f.Float("embed_dropout", default=0.0)},
    "decoder": Layers(
        f.Depth("num_layers", "num_hidden_layers", default=24),
        {
            "kind": "pre_norm",
            "norm": layer_norm("layer_norm_epsilon"),
            "attention": multi_head(
                f.Int("num_heads", "num_attention_heads", default=16),
                dropout=f.Float("attention_dropout", default=0.0),
                bias={"query": False, "key": False, "value": False, "output": True},
                scale=1.0,
            ),
            "feed_forward": mlp(
                f.Int("intermediate_size", default=f.times(4, _D_MODEL)),
                f.Activation("activation_function", "gelu_new"),
            ),
            "dropout": f.Float("resid_dropout", default=0.0),
        },
        (
            LayersOf(
                "local",
                {"attention": {"window": f.Int("window_size", default=256)}},
                _types,
                lambda types: {"attention_types": [[types, 1]], "attention_layers": types},
                lambda block: "global" if block.sliding_window is None else "local",
            ),
        ),
    ),
    "initialization": f.normal(),
}

_LAYER = {
    "ln_1": "attention_norm",
    **projections("attn.attention."),
    "ln_2": "feed_forward_norm",
    "mlp.c_fc": "feed_forward.up",
    "mlp.c_proj": "feed_forward.down",
}
_TENSORS = decoder_tensors(
    "gpt_neo",
    "transformer.",
    *modules({"wte": "embedding.token", "ln_f": "decoder.final_norm"}),
    same("wpe.weight", "embedding.position.table.weight"),
    *modules(_LAYER, "h.{layer}.", "decoder.blocks.{layer}."),
    unused=("h.*.attn.attention.bias", "h.*.attn.attention.masked_bias"),
)

FAMILIES = (
    Family(
        "gpt_neo",
        _TENSORS,
        _BODY,
        decoder_classes("GPTNeo", tied=True),
        fixed={
            "rotary": (False, "rotary positions make it a GPT-J, which early conversions stored as GPT-Neo")
        },
        ignored=("classifier_dropout", "rotary_dim", *SUMMARY),
    ),
)
