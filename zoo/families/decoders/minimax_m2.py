"""MiniMax-M2 (MiniMax, 2025): ``MiniMaxM2Config``, ``MiniMaxM2Model`` and its head: Mixtral routed by corrected sigmoid scores."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.held import also_named
from zoo.families.common.llama_like import BLOCK, LAYER, LlamaFields, llama_tensors
from zoo.families.common.mixtures import MIXTRAL_EXPERTS, MIXTRAL_MODULE, TRAINING, mixture
from zoo.families.common.tensors import same

_FIELDS = LlamaFields(
    vocab_size=200064, hidden_size=3072, intermediate_size=1536, layers=62, heads=48, kv_heads=8, head_dim=128,
    context=196608,
)  # fmt: skip


def _rotated_part(config: Config) -> float:
    """The part of a head that is rotated, which published configs state as a number of dimensions."""
    width: int = _FIELDS.heads.width.read(config)
    rotated: int = config.int("rotary_dim", default=width)
    return rotated / max(width, 1)


FAMILIES = (
    Family(
        "minimax_m2",
        llama_tensors(
            "minimax_m2",
            *MIXTRAL_EXPERTS,
            *also_named(
                [
                    same(
                        f"{LAYER}block_sparse_moe.e_score_correction_bias",
                        f"{BLOCK}feed_forward.router.score_correction_bias",
                    )
                ],
                MIXTRAL_MODULE,
            ),
        ),
        _FIELDS.body(
            attention={"bias": False, "qk_norm": {"norm": _FIELDS.norm, "over": "width"}},
            position=_FIELDS.rope(theta=5e6, fraction=f.Derived(_rotated_part)),
            feed_forward=mixture(
                256, 8, _FIELDS.feed_forward(), router={"scores": "sigmoid", "score_correction_bias": True}
            ),
        ),
        {"MiniMaxM2ForCausalLM": language_modeling(tied=False, bias=False), "MiniMaxM2Model": BODY},
        ignored=TRAINING,
    ),
)
