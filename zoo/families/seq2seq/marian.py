"""Marian (Junczys-Dowmunt et al., 2018) and Pegasus (Zhang et al., 2019): ``MarianConfig``, ``PegasusConfig`` and their
models."""

from __future__ import annotations

from zoo.families.common.fields import Int
from zoo.families.common.heads import BODY
from zoo.families.common.seq2seq import CONDITIONAL_GENERATION, SINUSOIDAL, BartFields, StackFields

_VOCABULARY = Int("vocab_size", default=58101, written=("vocab_size", "decoder_vocab_size"))

FAMILIES = (
    BartFields(StackFields("post_norm"), SINUSOIDAL, vocab_size=_VOCABULARY).family(
        "marian",
        {"MarianMTModel": CONDITIONAL_GENERATION, "MarianModel": BODY},
        fixed={
            "share_encoder_decoder_embeddings": (True, "encoder, decoder and head share one table"),
            "decoder_vocab_size": (_VOCABULARY, "encoder and decoder share one table"),
        },
    ),
    BartFields(StackFields("pre_norm"), SINUSOIDAL).family(
        "pegasus",
        {"PegasusForConditionalGeneration": CONDITIONAL_GENERATION, "PegasusModel": BODY},
    ),
)
