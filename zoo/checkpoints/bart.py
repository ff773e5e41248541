"""BART (Lewis et al., 2019), mBART, Marian and Pegasus: ``BartForConditionalGeneration`` and the like."""

from __future__ import annotations

from zoo.checkpoints.family import Family, Rule, affine, same


def _attention(stored: str, module: str) -> tuple[Rule, ...]:
    pairs = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "output"}.items()
    return tuple(rule for theirs, ours in pairs for rule in affine(f"{stored}.{theirs}", f"{module}.{ours}"))


def stack(name: str) -> tuple[Rule, ...]:
    """The layers of an encoder or a decoder, and what stands before and after them."""
    layer, block = f"{name}.layers.{{layer}}", f"{name}.blocks.{{layer}}"
    return (
        same(f"{name}.embed_positions.weight", f"{name}_embedding.position.table.weight"),
        *affine(f"{name}.layernorm_embedding", f"{name}_embedding.norm"),
        *affine(f"{layer}.self_attn_layer_norm", f"{block}.attention_norm"),
        *_attention(f"{layer}.self_attn", f"{block}.attention"),
        *affine(f"{layer}.encoder_attn_layer_norm", f"{block}.cross_attention_norm"),
        *_attention(f"{layer}.encoder_attn", f"{block}.cross_attention"),
        *affine(f"{layer}.final_layer_norm", f"{block}.feed_forward_norm"),
        *affine(f"{layer}.fc1", f"{block}.feed_forward.up"),
        *affine(f"{layer}.fc2", f"{block}.feed_forward.down"),
        *affine(f"{name}.layer_norm", f"{name}.final_norm"),
    )


BART = Family(
    name="bart",
    model_types=("bart", "mbart", "marian", "pegasus"),
    prefix="model.",
    outside=("lm_head.", "final_logits_bias", "classification_head.", "qa_outputs."),
    rules=(
        same("shared.weight", "encoder_embedding.token.weight", also=("encoder.embed_tokens.weight",)),
        same("decoder.embed_tokens.weight", "decoder_embedding.token.weight"),
        *stack("encoder"),
        *stack("decoder"),
    ),
    heads={
        "language_modeling": (
            same("lm_head.weight", "head.vocabulary.weight"),
            same("final_logits_bias", "head.bias"),
        ),
        "classification": (
            *affine("classification_head.dense", "head.dense"),
            *affine("classification_head.out_proj", "head.labels"),
        ),
        "question_answering": affine("qa_outputs", "head.span"),
    },
    optional=("lm_head.weight", "final_logits_bias", "classification_head.*", "qa_outputs.*"),
    unused=("encoder.version", "decoder.version"),
)
