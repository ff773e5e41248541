"""The templates of the parts of blocks, with the names of their fields that most configs have."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.template import Data, Field, Template


def multi_head(heads: int | Field, *, dropout: Template, **more: Template) -> Data:
    """An attention; ``heads`` may be the default of their number."""
    field = f.Int("num_attention_heads", default=heads) if isinstance(heads, int) else heads
    return {"kind": "multi_head", "heads": field, **more, "dropout": dropout}


def mlp(hidden: int | Field, activation: str | Field, **more: Template) -> Data:
    """A feed-forward without gate; ``hidden`` and ``activation`` may be the defaults of their usual fields."""
    width = f.Int("intermediate_size", default=hidden) if isinstance(hidden, int) else hidden
    field = f.Activation("hidden_act", activation) if isinstance(activation, str) else activation
    return {"kind": "mlp", "hidden": width, "activation": field, **more}


def gated(hidden: int | Field, activation: str | Field = "silu", **more: Template) -> Data:
    """A gated feed-forward; ``hidden`` and ``activation`` may be the defaults of their usual fields."""
    return {**mlp(hidden, activation, **more), "kind": "gated"}
