"""T5 (Raffel et al., 2019), T5 1.1 and mT5: ``T5ForConditionalGeneration``, ``T5Model`` and its other heads.

A layer's parts are numbered in order: self-attention 0, in the decoder cross-attention 1, feed-forward last.
"""

from __future__ import annotations

from zoo.checkpoints.family import Family, Rule, affine, same

_PROJECTIONS = {"q": "query", "k": "key", "v": "value", "o": "output"}


def _attention(stored: str, module: str) -> tuple[Rule, ...]:
    pairs = _PROJECTIONS.items()
    return tuple(same(f"{stored}.{theirs}.weight", f"{module}.{ours}.weight") for theirs, ours in pairs)


def _stack(stack: str, feed_forward: int) -> tuple[Rule, ...]:
    layer, block = f"{stack}.block.{{layer}}.layer", f"{stack}.blocks.{{layer}}"
    dense, ours = f"{layer}.{feed_forward}.DenseReluDense", f"{block}.feed_forward"
    return (
        same(
            f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
            f"{stack}.position.table.weight",
        ),
        same(f"{layer}.0.layer_norm.weight", f"{block}.attention_norm.weight"),
        *_attention(f"{layer}.0.SelfAttention", f"{block}.attention"),
        same(f"{layer}.{feed_forward}.layer_norm.weight", f"{block}.feed_forward_norm.weight"),
        same(f"{dense}.wi.weight", f"{ours}.up.weight"),
        same(f"{dense}.wi_0.weight", f"{ours}.gate.weight"),
        same(f"{dense}.wi_1.weight", f"{ours}.up.weight", beside=f"{ours}.gate.weight"),
        same(f"{dense}.wo.weight", f"{ours}.down.weight"),
        same(f"{stack}.final_layer_norm.weight", f"{stack}.final_norm.weight"),
    )


T5 = Family(
    name="t5",
    model_types=("t5", "mt5"),
    rules=(
        same("shared.weight", "encoder_embedding.token.weight", also=("encoder.embed_tokens.weight",)),
        same("shared.weight", "embedding.token.weight", also=("encoder.embed_tokens.weight",)),
        same("decoder.embed_tokens.weight", "decoder_embedding.token.weight"),
        *_stack("encoder", feed_forward=1),
        *_stack("decoder", feed_forward=2),
        same(
            "decoder.block.{layer}.layer.1.layer_norm.weight",
            "decoder.blocks.{layer}.cross_attention_norm.weight",
        ),
        *_attention(
            "decoder.block.{layer}.layer.1.EncDecAttention", "decoder.blocks.{layer}.cross_attention"
        ),
    ),
    heads={
        "language_modeling": (same("lm_head.weight", "head.vocabulary.weight"),),
        "classification": (
            *affine("classification_head.dense", "head.dense"),
            *affine("classification_head.out_proj", "head.labels"),
        ),
        "token_classification": affine("classifier", "head.labels"),
        "question_answering": affine("qa_outputs", "head.span"),
    },
    head_prefixes={"classification": "transformer.", "token_classification": "transformer."},
    outside=("lm_head.", "classification_head.", "classifier.", "qa_outputs."),
    optional=("lm_head.weight", "classification_head.*", "classifier.*", "qa_outputs.*"),
    unused=("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",),
)
