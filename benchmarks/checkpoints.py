"""Checkpoints with random weights in the format of the peers."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.process import ZOO, run

SMOLLM, GPT_OSS = "smollm2-135m", "gpt-oss-20b"


def checkpoint(preset: str, parent: Path, *changes: str) -> Path:
    """A preset as a directory that ``from_pretrained`` loads, with the tokenizer that a decoder's peers ask for."""
    directory = parent / f"{preset}-checkpoint"
    assignments = [part for change in changes for part in ("--set", change)]
    run([ZOO, "convert", preset, *assignments, "-o", str(directory)])
    if preset in (SMOLLM, GPT_OSS):
        _write_tokenizer(directory)
    return directory


def with_mxfp4_experts(directory: Path) -> Path:
    """A copy of a checkpoint of GPT-OSS with random MXFP4 experts beside the float ones: onnxruntime-genai quantizes no others."""
    import torch
    from safetensors.torch import load_file, save_file

    copy = directory.with_name(f"{directory.name}-mxfp4")
    shutil.copytree(directory, copy)
    tensors = load_file(copy / "model.safetensors")
    for name in [name for name in tensors if name.endswith((".gate_up_proj", ".down_proj"))]:
        experts, d_in, d_out = tensors[name].shape
        blocks = experts, d_out, d_in // 32
        tensors[f"{name}_blocks"] = torch.randint(256, (*blocks, 16), dtype=torch.uint8)
        tensors[f"{name}_scales"] = torch.full(blocks, 122, dtype=torch.uint8)  # 2 ** -5
    save_file(tensors, copy / "model.safetensors", metadata={"format": "pt"})
    return copy


def _write_tokenizer(directory: Path) -> None:
    """Write a tokenizer with one token per byte."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    end = "<|endoftext|>"
    pieces = [end, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE(vocab={piece: index for index, piece in enumerate(pieces)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=end, eos_token=end, pad_token=end
    ).save_pretrained(directory)
