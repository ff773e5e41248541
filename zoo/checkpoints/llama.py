"""Llama (Touvron et al., 2023): ``LlamaModel`` and its heads for language modeling, classification and answers.

Qwen2 and 3, SmolLM3 and OLMo name their tensors alike, and Mistral but for one head.
"""

from __future__ import annotations

from dataclasses import replace

from zoo.checkpoints.family import Family, affine, same

_STORED, _BLOCK = "layers.{layer}", "decoder.blocks.{layer}"

LLAMA = Family(
    name="llama",
    model_types=("llama", "olmo", "qwen2", "qwen3", "smollm3"),
    prefix="model.",
    head_prefixes={"question_answering": "transformer."},
    outside=("lm_head.", "score.", "qa_outputs."),
    rules=(
        same("embed_tokens.weight", "embedding.token.weight"),
        same(f"{_STORED}.input_layernorm.weight", f"{_BLOCK}.attention_norm.weight"),
        *affine(f"{_STORED}.self_attn.q_proj", f"{_BLOCK}.attention.query"),
        *affine(f"{_STORED}.self_attn.k_proj", f"{_BLOCK}.attention.key"),
        *affine(f"{_STORED}.self_attn.v_proj", f"{_BLOCK}.attention.value"),
        *affine(f"{_STORED}.self_attn.o_proj", f"{_BLOCK}.attention.output"),
        same(f"{_STORED}.self_attn.q_norm.weight", f"{_BLOCK}.attention.query_norm.weight"),
        same(f"{_STORED}.self_attn.k_norm.weight", f"{_BLOCK}.attention.key_norm.weight"),
        same(f"{_STORED}.post_attention_layernorm.weight", f"{_BLOCK}.feed_forward_norm.weight"),
        *affine(f"{_STORED}.mlp.gate_proj", f"{_BLOCK}.feed_forward.gate"),
        *affine(f"{_STORED}.mlp.up_proj", f"{_BLOCK}.feed_forward.up"),
        *affine(f"{_STORED}.mlp.down_proj", f"{_BLOCK}.feed_forward.down"),
        same("norm.weight", "decoder.final_norm.weight"),
    ),
    heads={
        "language_modeling": (same("lm_head.weight", "head.vocabulary.weight"),),
        "classification": (same("score.weight", "head.labels.weight"),),
        "token_classification": affine("score", "head.labels"),
        "question_answering": affine("qa_outputs", "head.span"),
    },
    optional=("lm_head.weight", "score.*", "qa_outputs.*"),
    unused=("layers.*.self_attn.rotary_emb.inv_freq", "rotary_emb.inv_freq"),
)

MISTRAL = replace(LLAMA, name="mistral", model_types=("mistral",), head_prefixes={})
