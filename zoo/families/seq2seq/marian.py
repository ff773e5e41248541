"""Marian (Junczys-Dowmunt et al., 2018) and Pegasus (Zhang et al., 2019): ``MarianConfig``, ``PegasusConfig`` and their
models."""

from __future__ import annotations

from zoo.families.common.fields import Int
from zoo.families.common.heads import BODY
from zoo.families.common.seq2seq import CONDITIONAL_GENERATION, SINUSOIDAL, bart_like

_VOCABULARY = Int("vocab_size", default=58101, written=("vocab_size", "decoder_vocab_size"))

FAMILIES = (
    bart_like(
        "marian",
        {"MarianMTModel": CONDITIONAL_GENERATION, "MarianModel": BODY},
        kind="post_norm",
        position=SINUSOIDAL,
        embedding_norm=False,
        vocab_size=_VOCABULARY,
        fixed={
            "share_encoder_decoder_embeddings": (True, "encoder, decoder and head share one table"),
            "decoder_vocab_size": (_VOCABULARY, "encoder and decoder share one table"),
        },
    ),
    bart_like(
        "pegasus",
        {"PegasusForConditionalGeneration": CONDITIONAL_GENERATION, "PegasusModel": BODY},
        kind="pre_norm",
        position=SINUSOIDAL,
        embedding_norm=False,
    ),
)
