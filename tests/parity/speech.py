"""Checkpoints that write what is said, with the settings of their recordings."""

from __future__ import annotations

import json
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

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


PIECES = ["▁", "e", "t", "a", "▁o", "n", "▁th", "s", "i", "<unk>"]


def parakeet_of(directory: Path) -> transformers.ParakeetForCTC:
    """A model of random weights, in a directory with its tokenizer and settings; the blank is the last label."""
    encoder = transformers.ParakeetEncoderConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=20, num_mel_bins=16,
        conv_kernel_size=5, subsampling_conv_channels=4, initializer_range=0.3,
    )  # fmt: skip
    config = transformers.ParakeetCTCConfig(
        vocab_size=len(PIECES) + 1, pad_token_id=len(PIECES), encoder_config=encoder
    )
    model: transformers.ParakeetForCTC = build(transformers.ParakeetForCTC, config, 8)
    model.save_pretrained(directory)
    processor = parakeet_processor()
    for part in (processor.tokenizer, processor.feature_extractor):
        part.save_pretrained(directory)
    return model


def parakeet_processor() -> transformers.ParakeetProcessor:
    """A tokenizer of a few pieces, and the settings of spectrograms."""
    pieces = Tokenizer(models.Unigram([(piece, -1.0) for piece in PIECES], len(PIECES) - 1))
    pieces.pre_tokenizer, pieces.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    pieces.add_special_tokens(["<pad>"])
    tokenizer = transformers.ParakeetTokenizer(
        tokenizer_object=pieces, unk_token="<unk>", pad_token="<pad>", clean_up_tokenization_spaces=False
    )
    return transformers.ParakeetProcessor(transformers.ParakeetFeatureExtractor(feature_size=16), tokenizer)


def wav2vec2_bert_of(directory: Path) -> transformers.Wav2Vec2BertForCTC:
    """A model of random weights that reads spectrograms, in a directory with its vocabulary and settings."""
    config = transformers.Wav2Vec2BertConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=20,
        feature_projection_input_dim=32, conv_depthwise_kernel_size=5,
    )  # fmt: skip
    model: transformers.Wav2Vec2BertForCTC = build(transformers.Wav2Vec2BertForCTC, config, 3)
    model.save_pretrained(directory)
    processor = wav2vec2_bert_processor(directory)
    for part in (processor.tokenizer, processor.feature_extractor):
        part.save_pretrained(directory)
    return model


def wav2vec2_bert_processor(directory: Path) -> transformers.Wav2Vec2BertProcessor:
    """A vocabulary of letters, and the settings of spectrograms."""
    extractor = transformers.SeamlessM4TFeatureExtractor(feature_size=16, num_mel_bins=16)
    return transformers.Wav2Vec2BertProcessor(extractor, processor_of(directory).tokenizer)


def generated(
    model: transformers.MoonshineForConditionalGeneration, samples: torch.Tensor, count: int
) -> list[int]:
    """The tokens that a model generates for a recording, greedily and without an end: N -> count."""
    length = {"min_new_tokens": count, "max_new_tokens": count}
    found = model.generate(input_values=samples[None], do_sample=False, num_beams=1, **length)
    return found[0, -count:].tolist()
