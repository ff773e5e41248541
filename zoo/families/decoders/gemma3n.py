"""The text models of Gemma 3n (Gemma team, 2025): ``Gemma3nTextConfig``, ``Gemma3nTextModel`` and ``Gemma3nForCausalLM``.

Gemma 4's embeddings per layer and reused keys and values, with several residual streams (AltUp), learned augmented residuals
(LAuReL) and sparse activations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specs.kinds.block import BlockParts
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.layer_lists import all_but_every
from zoo.families.common.layers import LayerVariation
from zoo.families.common.llama_like import LlamaFields, layer_weights, llama_tensors
from zoo.families.common.template import Data, FieldContext, UnfitError
from zoo.families.common.tensors import same, weights
from zoo.families.common.windowed_layers import Windows
from zoo.families.decoders.gemma import ACTIVATION, CAP, SANDWICH_NORMS
from zoo.families.decoders.gemma3 import Gemma3Rope
from zoo.families.decoders.gemma4 import (
    PER_LAYER_RULES,
    REUSED,
    ReusingLayers,
    per_layer_embedding,
)

_FIELDS = LlamaFields(
    vocab_size=262400, hidden_size=2048, intermediate_size=16384, layers=35, heads=8, kv_heads=2, head_dim=256,
    context=32768,
)  # fmt: skip
_FIELDS.hidden = f.EqualInLayers("intermediate_size", default=16384)
_POSITIONS = Gemma3Rope(_FIELDS)


class _Sparse(LayerVariation):
    """The layers whose gates are sparse, and the share of their values that are cut."""

    name, field = "sparse", "activation_sparsity_pattern"

    def __init__(self) -> None:
        self.differs = {"feed_forward": {"sparsity": f.Derived(self._share)}}

    def read(self, config: Config, depth: int) -> list[bool]:
        return [share > 0 for share in self._shares(config, depth)]

    def holds(self, block: BlockParts, index: int) -> bool:
        return getattr(block.feed_forward, "sparsity", None) is not None

    def write(self, where: Sequence[bool], context: FieldContext) -> Data:
        parts: list[Any] = [block.feed_forward for block in context.stack.layer_blocks()]
        if not all(hasattr(part, "sparsity") for part in parts):
            raise UnfitError("feed_forward without sparsity")
        return {self.field: [part.sparsity or 0.0 for part in parts]}

    def _share(self, config: Config) -> float | None:
        shares = set(self._shares(config, _FIELDS.depth.read(config))) - {0.0}
        if len(shares) > 1:
            config.refuse(self.field, "must have one number besides 0")
        return shares.pop() if shares else None

    def _shares(self, config: Config, depth: int) -> list[float]:
        shares = config.list(self.field)
        if shares is None:
            return [0.95 if depth > 10 and layer < 10 else 0.0 for layer in range(depth)]
        if len(shares) != depth or any(type(share) not in (int, float) for share in shares):
            config.refuse(self.field, f"must have a number for each of the {depth} layers")
        return [float(share) for share in shares]


_BLOCK = "decoder.blocks.{layer}.altup"
FAMILIES = (
    Family(
        "gemma3n_text",
        llama_tensors(
            "gemma3n",
            *SANDWICH_NORMS,
            *PER_LAYER_RULES,
            *layer_weights(
                {
                    "laurel.linear_left": "low_rank_residual.down",
                    "laurel.linear_right": "low_rank_residual.up",
                    "laurel.post_laurel_norm": "low_rank_residual.norm",
                    "altup.correction_coefs": "altup.correction",
                    "altup.prediction_coefs": "altup.prediction",
                    "altup.modality_router": "altup.router",
                    "altup.router_norm": "altup.norm",
                }
            ),
            same("layers.{layer}.altup.correct_output_scale", f"{_BLOCK}.output_scale"),
            *weights(
                {
                    "altup_projections.{stream}": "decoder.streams.into.{stream}",
                    "altup_unembed_projections.{stream}": "decoder.streams.out.{stream}",
                }
            ),
            without=("layernorm",),
            optional=("lm_head.weight", *REUSED),
        ),
        _FIELDS.body(
            kind="sandwich",
            attention={
                "bias": f.Bias("attention_bias", default=False),
                "scale": 1.0,
                "qk_norm": _FIELDS.qk_norm,
                "value_norm": {**_FIELDS.norm, "weight": False},
            },
            feed_forward=_FIELDS.feed_forward(activation=ACTIVATION),
            residual={"kind": "add", "scale": 0.5**0.5, "stream_scale": 0.5**0.5},
            feed_forward_residual={"kind": "add"},
            per_layer_embedding=per_layer_embedding(_FIELDS),
            low_rank_residual={"rank": f.Int("laurel_rank", default=64), "norm": _FIELDS.norm},
            position=_POSITIONS,
            varies=(
                Windows(
                    "local",
                    f.Int("sliding_window", default=512),
                    all_but_every(5),
                    position=f.Derived(_POSITIONS.read_local),
                ),
                ReusingLayers(f.Int("num_kv_shared_layers", default=15)),
                _Sparse(),
            ),
            more={"embedding": {"scale": "sqrt_d_model"}},
            stack={"altup": {"streams": f.Int("altup_num_inputs", default=4), "norm": _FIELDS.norm}},
        ),
        {
            "Gemma3nForCausalLM": language_modeling(
                tied=True, bias=False, softcap=f.Float(CAP, default=30.0)
            ),
            "Gemma3nTextModel": BODY,
        },
        fixed={
            "altup_active_idx": (0, "the first stream passes the layers"),
            "altup_correct_scale": (True, "the first stream is scaled before it gates an embedding"),
        },
        ignored=("altup_coef_clip", "hidden_act", CAP),
    ),
)
