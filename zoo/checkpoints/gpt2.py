"""GPT-2 (Radford et al., 2019): ``GPT2Model`` and its heads for language modeling, classification and answers.

Its matrices are stored d_in x d_out, and queries, keys and values as one.
"""

from __future__ import annotations

from zoo.checkpoints.family import Family, affine, fused, same, transposed
from zoo.checkpoints.transforms import STACKED, Transposed

_STORED, _BLOCK = "h.{layer}", "decoder.blocks.{layer}"
_QUERY_KEY_VALUE = tuple(f"{_BLOCK}.attention.{projection}" for projection in ("query", "key", "value"))


GPT2 = Family(
    name="gpt2",
    model_types=("gpt2",),
    prefix="transformer.",
    outside=("lm_head.", "score.", "classifier.", "qa_outputs."),
    rules=(
        same("wte.weight", "embedding.token.weight"),
        same("wpe.weight", "embedding.position.table.weight"),
        *affine(f"{_STORED}.ln_1", f"{_BLOCK}.attention_norm"),
        *fused(
            f"{_STORED}.attn.c_attn.weight",
            f"{_STORED}.attn.c_attn.bias",
            _QUERY_KEY_VALUE,
            Transposed(STACKED),
        ),
        *transposed(f"{_STORED}.attn.c_proj", f"{_BLOCK}.attention.output"),
        *affine(f"{_STORED}.ln_2", f"{_BLOCK}.feed_forward_norm"),
        *transposed(f"{_STORED}.mlp.c_fc", f"{_BLOCK}.feed_forward.up"),
        *transposed(f"{_STORED}.mlp.c_proj", f"{_BLOCK}.feed_forward.down"),
        *affine("ln_f", "decoder.final_norm"),
    ),
    heads={
        "language_modeling": (same("lm_head.weight", "head.vocabulary.weight"),),
        "classification": (same("score.weight", "head.labels.weight"),),
        "token_classification": affine("classifier", "head.labels"),
        "question_answering": affine("qa_outputs", "head.span"),
    },
    optional=("lm_head.weight", "score.weight", "classifier.*", "qa_outputs.*"),
    unused=("h.*.attn.bias", "h.*.attn.masked_bias"),
)
