"""From a spec with its weights to a checkpoint that ``from_pretrained`` loads."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from specs.model import Model
from specs.resolved import resolved
from specs.writing import dump
from zoo.builder import assemble
from zoo.checkpoints.families import family_of_model_type
from zoo.checkpoints.write import stored_tensors
from zoo.configs.config import CONFIG
from zoo.configs.exporting import write_config
from zoo.destination import CONVERSION
from zoo.progress import Progress, Stage
from zoo.weights.materialize import whole
from zoo.weights.open import open_weights
from zoo.weights.saving import SHARD, Entry, save
from zoo.weights.tensors import weight_tensors

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
"""The types that weights are written in, by the names of the command line."""

_LABELS = ("id2label", "label2id")
_TOKENS = (
    *(f"{name}_token_id" for name in ("bos", "eos", "pad", "sep", "cls", "mask", "unk", "decoder_start")),
    "forced_bos_token_id",
    "forced_eos_token_id",
)
_CARRIED_FILES = [
    "added_tokens.json",
    "chat_template.jinja",
    "generation_config.json",
    "merges.txt",
    "preprocessor_config.json",
    "sentencepiece.bpe.model",
    "special_tokens_map.json",
    "spiece.model",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
]
"""What a checkpoint's directory has beside config and weights: the same tokens go into the converted model."""


@dataclass(frozen=True)
class Conversion:
    """A checkpoint that was written: the class that loads it, its weights and files."""

    class_name: str
    model_type: str
    weights: str
    dtype: str
    parameters: int
    files: dict[str, int]


def convert(
    spec: Model,
    weights: str,
    directory: Path,
    *,
    model_type: str | None = None,
    dtype: str = "fp32",
    seed: int = 0,
    shard: int = SHARD,
    progress: Progress = lambda stage: None,
) -> Conversion:
    """Write config, weights and tokenizer into a directory, which is there and empty.

    The family is ``model_type``, or that of the checkpoint of the weights, or the first, whose config can say all of
    the spec; ``weights`` are as for
    :func:`zoo.weights.open.open_weights`.  At no time is more than one stored tensor in memory.  Raises :class:`specs.errors.UserError`.
    """
    origin = Path(weights)
    stated = _stated(origin)
    config = write_config(spec, model_type, preferred=stated.get("model_type"))
    family = family_of_model_type(config["model_type"])
    model = assemble(spec, DTYPES[dtype])
    source = open_weights(weights, model, spec, seed=seed, dtype=DTYPES[dtype])
    layout = {name: Entry(tuple(tensor.shape), tensor.dtype)
              for name, tensor in stored_tensors(model, spec, family)}  # fmt: skip
    done, total = 0, sum(entry.nbytes for entry in layout.values())

    def advance(count: int) -> None:
        nonlocal done
        done += count
        progress(Stage("write weights", done, total))

    shapes = dict(weight_tensors(model))
    tensors = stored_tensors(model, spec, family, lambda name: whole(shapes[name], source.pieces(name)))
    save(directory, layout, tensors, advance, shard=shard)
    _write_json(
        directory / CONFIG,
        {**config, **_carried_fields(stated, config), "dtype": str(DTYPES[dtype]).removeprefix("torch.")},
    )
    for name in _CARRIED_FILES:
        if (Path(weights) / name).is_file():
            shutil.copyfile(Path(weights) / name, directory / name)
    (directory / "spec.yaml").write_text(dump(resolved(spec)))
    result = Conversion(
        class_name=config["architectures"][0],
        model_type=config["model_type"],
        weights=source.description,
        dtype=dtype,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        files={path.name: path.stat().st_size for path in sorted(directory.iterdir())},
    )
    _write_json(directory / CONVERSION, asdict(result))
    return result


def _stated(origin: Path) -> dict[str, Any]:
    """The config of the checkpoint that the weights are from, if it has one."""
    try:
        data = json.loads((origin / CONFIG).read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _carried_fields(stated: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """The labels of the checkpoint that the weights are from, and the special tokens that the config leaves open."""
    fields = [*_LABELS, *(name for name in _TOKENS if config.get(name) is None)]
    return {name: stated[name] for name in fields if name in stated}


def _write_json(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data, indent=2) + "\n")
