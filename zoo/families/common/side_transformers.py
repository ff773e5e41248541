"""Zamba's layers beside a shared transformer, and its tensors.

Checkpoints store a shared transformer in the first layer that uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from specs.kinds.attention import MultiHeadShape
from specs.kinds.block import BlockParts
from specs.kinds.side_transformer import SideTransformer
from specs.model.model import Model
from zoo.families.common import fields as f
from zoo.families.common.attention import shape_of
from zoo.families.common.config import Config
from zoo.families.common.layer_lists import LINEAR
from zoo.families.common.layers import LayerVariation
from zoo.families.common.llama_like import BLOCK
from zoo.families.common.template import Data, Field, FieldContext, UnfitError
from zoo.families.common.tensors import Rule, same

HYBRID = "hybrid"
"""The word for a layer beside a transformer."""

Check = Callable[[Config, int, int], None]
"""Refuses numbers of query heads and of key-value heads that the reference has no tensors for."""


class SideTransformers:
    """The fields of the transformers: widths that follow from the model's, and the layers beside one."""

    def __init__(
        self,
        d_model: f.Int,
        *,
        heads: int,
        kinds: Callable[[Config], list[str]],
        least: int = 1,
        check: Check | None = None,
    ) -> None:
        """heads: the default of the reference, least: the fewest layers beside a transformer that it can have."""
        self.d_model, self.heads, self.kinds = d_model, f.Int("num_attention_heads", default=heads), kinds
        self.least, self.check = least, check
        self.head_dim = f.Derived(lambda config: self.both(config) // max(self.heads.read(config), 1))

    def both(self, config: Config) -> int:
        """The width of the stream and the embedding together."""
        return 2 * int(self.d_model.read(config))

    def uses(self, config: Config) -> list[int]:
        """The layers beside a transformer."""
        return [layer for layer, kind in enumerate(self.kinds(config)) if kind == HYBRID]

    def attention(self) -> Data:
        """The attention of a transformer."""
        dropout = f.Float("attention_dropout", default=0.0)
        return {"*": _WholeHeads(self), "bias": False, "dropout": dropout}

    def layers(self, differs: Data, sets: f.Int | None = None) -> LayerVariation:
        """The layers beside one of ``sets`` transformers, by default the only one."""
        return _Hybrids(self, differs, sets)

    def fixed(self) -> dict[str, tuple[Any, str]]:
        """Fields that have one value."""
        return {
            "attention_head_dim": (self.head_dim, "the heads share the width of stream and embedding"),
            "attention_hidden_size": (
                f.Derived(self.both),
                "the attention reads the stream and the embedding",
            ),
        }


class _Hybrids(LayerVariation):
    """The layers beside a transformer."""

    name = "hybrid"

    def __init__(self, sides: SideTransformers, differs: Data, sets: f.Int | None) -> None:
        self.sides, self.differs, self.sets = sides, differs, sets

    @property
    def _rule(self) -> str:
        some = "a layer" if self.sides.least == 1 else f"at least {self.sides.least} layers"
        return f"must have {some} of kind {HYBRID}"

    def read(self, config: Config, depth: int) -> list[bool]:
        uses = self.sides.uses(config)
        if len(uses) < self.sides.least:
            config.refuse("layers_block_type", self._rule)
        if self.sets is not None and not 1 <= self.sets.read(config) <= len(uses):
            rule = f"must be from 1 to {len(uses)}, the number of hybrid layers"
            config.refuse(self.sets.names[0], rule)
        return [layer in uses for layer in range(depth)]

    def holds(self, block: BlockParts, index: int) -> bool:
        return isinstance(block, SideTransformer)

    def write(self, where: Sequence[bool], context: FieldContext) -> Data:
        if sum(where) < self.sides.least:
            raise UnfitError(f"fewer than {self.sides.least} layers beside a transformer")
        return {"layers_block_type": [HYBRID if hybrid else LINEAR for hybrid in where]}


class _WholeHeads(Field):
    """The heads of a transformer, which share the width of stream and embedding; scores are scaled as if half as wide."""

    component = MultiHeadShape

    def __init__(self, sides: SideTransformers) -> None:
        self.sides = sides

    def read(self, config: Config) -> Data:
        heads, both = self.sides.heads.read(config), self.sides.both(config)
        if heads < 1 or both % heads:
            config.refuse("num_attention_heads", f"must divide 2 * hidden_size, which is {both}")
        kv_heads = config.int("num_key_value_heads", default=heads)
        if self.sides.check is not None:
            self.sides.check(config, heads, kv_heads)
        width = both // heads
        return {**shape_of(heads, kv_heads), "head_dim": width, "scale": (width / 2) ** -0.5}

    def write(self, value: MultiHeadShape, context: FieldContext) -> Data:
        return {
            **self.sides.heads.write(value.heads, context),
            "num_key_value_heads": value.key_value_heads,
        }


def places(spec: Model) -> Sequence[dict[str, int]]:
    """The first layer of the transformer of each layer, and the number of its use."""
    if spec.decoder is None:
        return []
    blocks = spec.decoder.layer_blocks()
    uses = [layer for layer, block in enumerate(blocks) if isinstance(block, SideTransformer)]
    uses_of_layers: list[dict[str, int]] = [{} for _ in blocks]
    for use, layer in enumerate(uses):
        sharing = blocks[layer].sharing
        uses_of_layers[layer] = {"owner": uses[use % (sharing.sets if sharing else len(uses))], "use": use}
    return uses_of_layers


def shared_rules(stored: str) -> tuple[Rule, ...]:
    """The tensors of a shared transformer, whose names begin with ``stored``, without those into its feed-forward."""
    names = {
        **{f"self_attn.{name[0]}_proj": f"attention.{name}" for name in ("query", "key", "value", "output")},
        "feed_forward.down_proj": "feed_forward.down",
        "input_layernorm": "attention_norm",
        "pre_ff_layernorm": "feed_forward_norm",
    }
    return tuple(
        same(f"{stored}{theirs}.{leaf}", f"{BLOCK}{ours}.{leaf}")
        for theirs, ours in names.items()
        for leaf in ("weight", "bias")
    )
