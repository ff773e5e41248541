"""GGUF files of a small Llama whose matrices are random blocks of any format."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
HALVES = {
    "Q4_0": {0: 0.01},
    "Q4_1": {0: 0.01, 2: 0.08},
    "Q5_0": {0: 0.005},
    "Q5_1": {0: 0.005, 2: 0.08},
    "Q8_0": {0: 0.001},
    "Q4_K": {0: 2e-4, 2: 2e-3},
    "Q5_K": {0: 1e-4, 2: 2e-3},
    "Q6_K": {208: 2e-5},
}
"""Where blocks of each format have float16 numbers, and of which size these are."""

WIDTH, HIDDEN, VOCABULARY = 256, 512, 96
SHAPES = {
    "token_embd": (VOCABULARY, WIDTH),
    "blk.0.attn_q": (256, WIDTH),
    "blk.0.attn_k": (128, WIDTH),
    "blk.0.attn_v": (128, WIDTH),
    "blk.0.attn_output": (WIDTH, 256),
    "blk.0.ffn_gate": (HIDDEN, WIDTH),
    "blk.0.ffn_up": (HIDDEN, WIDTH),
    "blk.0.ffn_down": (WIDTH, HIDDEN),
}
HEADS = {"blk.0.attn_q": 4, "blk.0.attn_k": 2}


def random_blocks(kind: str, rows: int, width: int, seed: int) -> Bytes:
    """Rows of random blocks of a format, all of whose values are finite."""
    rng = np.random.default_rng(seed)
    size, nbytes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    blocks = rng.integers(0, 256, (rows, width // size, nbytes), dtype=np.uint8)
    for offset, scale in HALVES[kind].items():
        halves = (scale * rng.uniform(0.5, 1.5, (rows, width // size, 1))).astype(np.float16)
        if kind in ("Q4_1", "Q5_1") and offset == 2:
            halves = -halves
        blocks[:, :, offset : offset + 2] = halves.view(np.uint8)
    return blocks.reshape(rows, -1)


def write_quantized(path: Path, kinds: dict[str, str]) -> dict[str, NDArray[np.float32]]:
    """Write a Llama whose matrices have these kinds, by part of a name (the last that matches counts); gives the values
    of each, as the library dequantizes them and in the rows of a parameter."""
    writer = gguf.GGUFWriter(path, "llama")
    for key, value in {
        "context_length": 64, "embedding_length": WIDTH, "block_count": 1, "feed_forward_length": HIDDEN,
        "attention.head_count": 4, "attention.head_count_kv": 2, "vocab_size": VOCABULARY, "rope.dimension_count": 64,
    }.items():  # fmt: skip
        writer.add_uint32(f"llama.{key}", value)
    writer.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5)
    values = {}
    for seed, (name, (rows, width)) in enumerate(SHAPES.items()):
        kind = [kind for part, kind in kinds.items() if part in name][-1]
        blocks = random_blocks(kind, rows, width, seed)
        form = gguf.GGMLQuantizationType[kind]
        writer.add_tensor(f"{name}.weight", blocks, raw_dtype=form)
        made = gguf.quants.dequantize(blocks, form)
        if name in HEADS:  # pairs of rotated dimensions stand together
            made = made.reshape(HEADS[name], -1, 2, width).swapaxes(1, 2).reshape(rows, width)
        values[name] = made
    for name in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(WIDTH, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return values
