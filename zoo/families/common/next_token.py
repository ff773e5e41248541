"""Modules of multi-token prediction (DeepSeek-V3: DeepSeek-AI, 2024, section 2.2): classes and tensors in addition to a family's.

The module is a decoder of one layer, the family's layer without variations, which reads the hidden states of the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from specs.model.stack import Stack
from zoo.families.common.config import Config
from zoo.families.common.family import HeadClass
from zoo.families.common.layers import Layers
from zoo.families.common.llama_like import LAYER
from zoo.families.common.template import Data, FieldContext, Template, read
from zoo.families.common.tensors import Rule, Tensors, modules, same

COUNTS = ("num_nextn_predict_layers", "mtp_num_hidden_layers")
"""The names of the field of the number of modules."""


class _OneLayer(Layers):
    """The layer of the module; ``count`` is the field of the number of modules that is written."""

    def __init__(self, layers: Layers, count: str) -> None:
        super().__init__(layers.depth, layers.block, layers.varies, **layers.more)
        self.count = count

    def read(self, config: Config) -> Data:
        for name in COUNTS:
            config.must(name, 1, "a spec has one module that predicts a further token")
        super().read(config)  # the layers of the model
        return {**read(self.more, config), "layers": 1, "block": read(self.block, config)}

    def write(self, value: Stack | None, context: FieldContext) -> Data:
        return {**super().write(value, context), self.count: 1}


def next_token_class(
    body: Mapping[str, Template], norm: Template, scores: HeadClass, count: str = COUNTS[0]
) -> HeadClass:
    """The class of the module of a model with this body and these scores; ``norm`` is the norm of tokens and of hidden states."""
    embedding = {"kind": "next_token", "norm": norm, "hidden_norm": norm}
    own = {**body, "embedding": embedding, "decoder": _OneLayer(body["decoder"], count)}
    return HeadClass(scores.kind, scores.head, own)


MARK = "layers.*.eh_proj.weight"
"""The projection of a module that is stored as a layer after the layers of the model (DeepSeek, GLM)."""

_AS_LAYER = {
    "layers.0.enorm": "embedding.norm",
    "layers.0.hnorm": "embedding.hidden_norm",
    "layers.0.eh_proj": "embedding.projection",
    "layers.0.shared_head.norm": "decoder.final_norm",
}


_OWN = (
    same("layers.0.embed_tokens.weight", "embedding.token.weight", also=("embed_tokens.weight",)),
    same("layers.0.shared_head.head.weight", "head.vocabulary.weight", also=("lm_head.weight",)),
)
"""The module's copies of the token table and head, or else the model's own."""

_MODELS = (
    same("embed_tokens.weight", "embedding.token.weight", also=("language_model.embed_tokens.weight",)),
)
"""The token table of the model."""


def with_next_layer(table: Tensors) -> Tensors:
    """The table of a family whose module is stored as the layer after the last; alone, it is the only layer."""
    table = with_next_token(table, "", _AS_LAYER, _OWN)
    assert table.next_token is not None
    return replace(table, unused_layers=MARK, next_token=replace(table.next_token, first_layer=MARK))


def with_next_token(
    table: Tensors, prefix: str, names: Mapping[str, str], shared: tuple[Rule, ...] = _MODELS
) -> Tensors:
    """The table of a family, with the names of its module's tensors: ``prefix`` precedes its layers, ``names`` name its token
    norm, hidden norm, projection and final norm, and ``shared`` the rules of what it shares with the model."""
    layers = [rule for rule in table.rules if rule.stored.startswith(LAYER)]
    own = [
        replace(
            rule,
            stored=prefix + rule.stored,
            copies=tuple(map(prefix.__add__, rule.copies)),
            also=tuple(map(prefix.__add__, rule.also)),
        )
        for rule in layers
    ]
    module = replace(
        table,
        rules=(*modules(names), *shared, *own),
        outside=(*table.outside, *filter(None, [prefix])),
        unused=("*",),  # the model itself
    )
    return replace(table, next_token=module)
