"""Checkpoints with random weights, as the peers read them."""

from __future__ import annotations

from pathlib import Path

from benchmarks.process import ZOO, run

SMOLLM = "smollm2-135m"


def checkpoint(preset: str, place: Path) -> Path:
    """A preset as a directory that ``from_pretrained`` loads, with the tokenizer that a decoder's peers ask for."""
    directory = place / f"{preset}-checkpoint"
    run([ZOO, "convert", preset, "-o", str(directory)])
    if preset == SMOLLM:
        _write_tokenizer(directory)
    return directory


def _write_tokenizer(directory: Path) -> None:
    """One token for every byte."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    end = "<|endoftext|>"
    pieces = [end, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE(vocab={piece: at for at, piece in enumerate(pieces)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=end, eos_token=end, pad_token=end
    ).save_pretrained(directory)
