"""Checkpoints that write what is said, with the settings of their recordings."""

from __future__ import annotations

import json
from pathlib import Path

import torch
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


def moonshine_of(directory: Path) -> transformers.MoonshineForConditionalGeneration:
    """A model of random weights that generates tokens, in a directory with the settings of its recordings."""
    config = transformers.MoonshineConfig(
        vocab_size=50, hidden_size=24, intermediate_size=20, encoder_num_hidden_layers=1, decoder_num_hidden_layers=2,
        encoder_num_attention_heads=2, decoder_num_attention_heads=2, pad_token_id=2, tie_word_embeddings=False,
    )  # fmt: skip
    model: transformers.MoonshineForConditionalGeneration = build(
        transformers.MoonshineForConditionalGeneration, config, 9
    )
    model.save_pretrained(directory)
    extractor = transformers.Wav2Vec2FeatureExtractor(do_normalize=False, return_attention_mask=True)
    extractor.save_pretrained(directory)
    return model


def generated(
    model: transformers.MoonshineForConditionalGeneration, samples: torch.Tensor, count: int
) -> list[int]:
    """The tokens that a model generates for a recording, greedily and without an end: N -> count."""
    length = {"min_new_tokens": count, "max_new_tokens": count}
    found = model.generate(input_values=samples[None], do_sample=False, num_beams=1, **length)
    return found[0, -count:].tolist()
