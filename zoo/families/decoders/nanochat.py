"""nanochat (Karpathy, 2025): ``NanoChatConfig``, ``NanoChatModel`` and its head.

Norms have no weights, one follows the embedding, and those of queries and keys follow the rotation, which turns the other way:
that is a rotation of heads whose halves are exchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from specs.kinds.attention import MultiHeadShape
from specs.model.model import Model
from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.llama_like import (
    BLOCK,
    LAYER,
    WHOLE_HEADS,
    LlamaFields,
    layer_weights,
    llama_tensors,
)
from zoo.families.common.tensors import Rule
from zoo.families.common.transforms import SAME, Shape, Transform

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class _HalvesExchanged:
    """A projection to heads, whose halves are stored in the other order."""

    heads: int
    by_rows: ClassVar[bool] = True

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        return shapes[0]

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        return (stored.unflatten(0, (self.heads, 2, -1)).flip(1).flatten(0, 2),)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return self.split(parts[0], ())[0]


def _exchanged(of_keys: bool) -> Any:
    def of_spec(spec: Model) -> Transform:
        attention = spec.last_stack.layer_blocks()[0].attention
        if not isinstance(attention, MultiHeadShape):
            return SAME  # a spec of another family
        return _HalvesExchanged(attention.key_value_heads if of_keys else attention.heads)

    return of_spec


_FIELDS = LlamaFields(
    vocab_size=50304, hidden_size=768, intermediate_size=8192, layers=12, heads=6, kv_heads=6
)
_NORM = {"kind": "rms_norm", "eps": _FIELDS.eps, "weight": False}
_FIELDS.norm = _NORM
_PROJECTIONS = tuple(
    Rule(f"{LAYER}self_attn.{theirs}.{leaf}", (f"{BLOCK}attention.{ours}.{leaf}",), _exchanged(ours == "key"))
    for theirs, ours in (("q_proj", "query"), ("k_proj", "key"))
    for leaf in ("weight", "bias")
)

FAMILIES = (
    Family(
        "nanochat",
        llama_tensors(
            "nanochat",
            *_PROJECTIONS,
            *layer_weights({"mlp.fc1": "feed_forward.up", "mlp.fc2": "feed_forward.down"}),
            without=("norm", "mlp.", "q_proj", "k_proj"),
        ),
        _FIELDS.body(
            attention={
                "bias": f.Bias("attention_bias", default=False),
                "qk_norm": {"norm": _NORM, "over": "head", "after_rotation": True},
            },
            feed_forward=_FIELDS.mlp(False),
            position=_FIELDS.rope(whole=WHOLE_HEADS),
            more={"embedding": {"norm": _NORM}},
        ),
        {
            "NanoChatForCausalLM": language_modeling(
                tied=False, bias=False, softcap=f.Float("final_logit_softcapping", default=15.0, null=True)
            ),
            "NanoChatModel": BODY,
        },
        ignored=("final_logit_softcapping",),
    ),
)
