"""The config fields of attention heads."""

from __future__ import annotations

from specs.kinds.attention import MultiHeadShape
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.template import Data, Field, FieldContext, joined


def per_head(d_model: Field, heads: Field) -> f.Derived:
    """Return the head width that divides the model's width evenly."""
    return f.Derived(lambda config: d_model.read(config) // max(heads.read(config), 1))


class QueryGroups(Field):
    """The kind of an attention, and the number of its heads and of its key/value heads; ``width`` is the field of the heads' width,
    if a config states it."""

    component = MultiHeadShape

    def __init__(self, heads: Field, kv_heads: Field, width: Field | None = None) -> None:
        self.heads, self.kv_heads, self.width = heads, kv_heads, width

    def read(self, config: Config) -> Data:
        width = {} if self.width is None else {"head_dim": self.width.read(config)}
        return {**shape_of(self.heads.read(config), self.kv_heads.read(config)), **width}

    def write(self, value: MultiHeadShape, context: FieldContext) -> Data:
        data = joined(
            self.heads.write(value.heads, context), self.kv_heads.write(value.key_value_heads, context)
        )
        if self.width is None:
            return data
        return joined(data, self.width.write(value.head_width(context.model.output_width), context))


def shape_of(heads: int, kv_heads: int) -> Data:
    """The kind of an attention with these numbers of heads, and the numbers."""
    if kv_heads == heads:
        return {"kind": "multi_head", "heads": heads}
    return {"kind": "grouped_query", "heads": heads, "kv_heads": kv_heads}


class Heads(Field):
    """The kind of an attention, and the number and width of its heads and of its key/value heads.

    ``kv_heads`` is the default of num_key_value_heads (default: the number of heads), and ``head_dim`` the default of the
    field of this name; a family without the field sets ``has_head_dim`` to False.
    """

    component = MultiHeadShape

    def __init__(
        self,
        d_model: Field,
        heads: f.Int,
        *,
        kv_heads: int | None = None,
        head_dim: int | None = None,
        has_head_dim: bool = True,
    ) -> None:
        self.d_model, self.heads, self.kv_heads, self.has_head_dim = d_model, heads, kv_heads, has_head_dim
        even = per_head(d_model, heads)
        self.width = f.Int("head_dim", default=head_dim or even) if has_head_dim else even

    def read(self, config: Config) -> Data:
        heads, width = self.heads.read(config), self.width.read(config)
        default = None if config.null("num_key_value_heads") else self.kv_heads
        kv_heads = config.int("num_key_value_heads", default=default or heads)
        shape = shape_of(heads, kv_heads)
        return shape if width * heads == self.d_model.read(config) else {**shape, "head_dim": width}

    def write(self, value: MultiHeadShape, context: FieldContext) -> Data:
        width = {"head_dim": context.head_width()} if self.has_head_dim else {}
        return {
            **self.heads.write(value.heads, context),
            "num_key_value_heads": value.key_value_heads,
            **width,
        }
