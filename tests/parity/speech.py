"""A checkpoint that writes letters, with its vocabulary and the settings of its recordings."""

from __future__ import annotations

import json
from pathlib import Path

import transformers

from tests.parity.reference import build

WORDS = ["<pad>", "<s>", "</s>", "<unk>", "|", "E", "T", "A", "O", "N", "'"]


def processor_of(directory: Path, *, lower: bool = False) -> transformers.Wav2Vec2Processor:
    """A vocabulary of letters, and the settings of recordings."""
    vocabulary = directory / "letters.json"
    vocabulary.write_text(json.dumps({word: place for place, word in enumerate(WORDS)}))
    tokenizer = transformers.Wav2Vec2CTCTokenizer(str(vocabulary), do_lower_case=lower)
    extractor = transformers.Wav2Vec2FeatureExtractor(return_attention_mask=True)
    return transformers.Wav2Vec2Processor(extractor, tokenizer)


def reference_of(directory: Path) -> transformers.Wav2Vec2ForCTC:
    """A model of random weights, in a directory with its vocabulary and settings."""
    config = transformers.Wav2Vec2Config(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=20, vocab_size=len(WORDS),
        conv_dim=[8, 8], conv_kernel=[40, 20], conv_stride=[20, 16], num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2, feat_extract_norm="layer", do_stable_layer_norm=True,
    )  # fmt: skip
    model: transformers.Wav2Vec2ForCTC = build(transformers.Wav2Vec2ForCTC, config, 6)
    model.save_pretrained(directory)
    processor = processor_of(directory)
    for part in (processor.tokenizer, processor.feature_extractor):
        part.save_pretrained(directory)
    return model
