"""Switch Transformers (Fedus et al., 2021): ``SwitchTransformersConfig`` and its models: T5 with one expert per token.

The reference drops what an expert receives beyond its capacity in a sequence.  Up to that length, nothing is dropped: it is
the context length of the spec.
"""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.blocks import mlp
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import BODY
from zoo.families.common.mixtures import TRAINING, CountedMixtures
from zoo.families.common.template import Template
from zoo.families.common.tensors import Rule, affine, same
from zoo.families.seq2seq.t5 import DROPOUT, T5Fields, t5_tensors


def _with_mixture(count: int, depth: int) -> list[bool]:
    """Which layers have a mixture if ``count`` of them are to: every n-th, beginning with the second."""
    step = depth // count if count > 0 else depth
    return [step > 0 and (layer % step == 1 or step == 1) for layer in range(depth)]


_EXPERT = mlp(f.Int("d_ff", default=2048), f.Activation("dense_act_fn", "relu"), bias=False, dropout=DROPOUT)
_MIXTURE = {
    "kind": "mixture",
    "experts": f.Int("num_experts", default=8),
    "top_k": 1,
    "expert": _EXPERT,
    "router": {"normalize": False, "bias": f.Bool("router_bias", default=False)},
}
_VARIES = {
    side: (CountedMixtures(_EXPERT, f.Int(f"num_sparse_{side}_layers", default=3), _with_mixture),)
    for side in ("encoder", "decoder")
}


_FIELDS = T5Fields(_MIXTURE, heads=12, layers=12, vocab_size=32128, d_model=768, varies=_VARIES)


def _body(*, decoder: bool = True) -> Template:
    return _FIELDS.body(decoder=decoder, context_length=f.ContextLength("expert_capacity", default=64))


def _experts(stack: str, feed_forward: int) -> tuple[Rule, ...]:
    stored = f"{stack}.block.{{layer}}.layer.{feed_forward}.mlp"
    ours = f"{stack}.blocks.{{layer}}.feed_forward"
    expert = f"{stored}.experts.expert_{{expert}}"
    return (
        *affine(f"{stored}.router.classifier", f"{ours}.router"),
        same(f"{expert}.wi.weight", f"{ours}.experts.up.weight"),
        same(f"{expert}.wo.weight", f"{ours}.experts.down.weight"),
    )


_SCORES = HeadClass("language_modeling", {"tie_embeddings": True, "scale": "inverse_sqrt_d_model"})

FAMILIES = (
    Family(
        "switch_transformers",
        t5_tensors("switch_transformers", "mlp", *_experts("encoder", 1), *_experts("decoder", 2)),
        _body(),
        {
            "SwitchTransformersForConditionalGeneration": _SCORES,
            "SwitchTransformersModel": BODY,
            "SwitchTransformersEncoderModel": HeadClass("none", body=_body(decoder=False)),
        },
        fixed={
            "is_decoder": (False, "it is the decoder alone"),
            "add_cross_attention": (False, "the decoder has it anyway"),
            "tie_word_embeddings": (True, "otherwise encoder and decoder have a table each"),
            "router_dtype": ("float32", "routing is computed in float32"),
        },
        ignored=(
            "num_decoder_layers",
            "num_sparse_decoder_layers",
            "encoder_sparse_step",  # which, like the next, follows from the number of sparse layers
            "decoder_sparse_step",
            "add_router_probs",
            "router_ignore_padding_tokens",
            "router_z_loss_coef",
            *TRAINING,
        ),
    ),
)
