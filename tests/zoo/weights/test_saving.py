"""Safetensors as we write them: read by the format's own library, in one file or in shards with an index."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
import transformers
from torch import Tensor

import zoo
from specs.base.errors import UserError
from tests.zoo.tiny import gpt2
from zoo.checkpoints.converting import convert
from zoo.weights.files import TensorFiles
from zoo.weights.saving import TensorHeader, save

TENSORS = {
    "matrix": torch.arange(12.0).reshape(3, 4),
    "half": torch.arange(5, dtype=torch.float16),
    "brain": torch.ones(2, 3, dtype=torch.bfloat16),
    "turned": torch.arange(6.0).reshape(2, 3).t(),
    "scalar": torch.tensor(7.0),
    "none": torch.empty(0, 4),
}


def written(directory: Path, tensors: dict[str, Tensor], **options: Any) -> list[str]:
    entries = {name: TensorHeader(tuple(tensor.shape), tensor.dtype) for name, tensor in tensors.items()}
    return save(directory, entries, tensors.items(), **options)


def test_one_file_is_read_by_the_formats_own_library(tmp_path: Path) -> None:
    assert written(tmp_path, TENSORS) == ["model.safetensors"]
    read = safetensors.torch.load_file(tmp_path / "model.safetensors")
    assert set(read) == set(TENSORS)
    for name, tensor in TENSORS.items():
        assert read[name].dtype == tensor.dtype
        assert torch.equal(read[name], tensor)


@pytest.mark.parametrize(("shard", "count"), [(10**9, 1), (60, 2), (1, 6)])
def test_shards_hold_no_more_than_they_may_but_for_one_tensor(shard: int, count: int, tmp_path: Path) -> None:
    names = written(tmp_path, TENSORS, shard=shard)
    shards = [name for name in names if name.endswith(".safetensors")]
    assert len(shards) == count
    found: dict[str, Tensor] = {}
    for name in shards:
        part = safetensors.torch.load_file(tmp_path / name)
        assert len(part) == 1 or sum(tensor.nbytes for tensor in part.values()) <= shard
        found |= part
    assert all(torch.equal(found[name], tensor) for name, tensor in TENSORS.items())
    if count > 1:
        index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
        assert index["metadata"]["total_size"] == sum(tensor.nbytes for tensor in TENSORS.values())
        assert set(index["weight_map"]) == set(TENSORS)
    stored = TensorFiles.open(tmp_path).tensors
    assert all(torch.equal(stored[name].read(), TENSORS[name]) for name in ("matrix", "half", "brain"))


@pytest.mark.parametrize(
    ("dtype", "theirs"), [("fp32", torch.float32), ("fp16", torch.float16), ("bf16", torch.bfloat16)]
)
def test_a_conversion_in_shards_is_loaded_by_transformers(
    dtype: str, theirs: torch.dtype, tmp_path: Path
) -> None:
    spec = gpt2(head={"kind": "language_modeling"})
    result = convert(spec, "random", tmp_path, dtype=dtype, shard=1000)
    assert result.class_name == "GPT2LMHeadModel"
    assert "model.safetensors.index.json" in result.files
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype="auto").eval()
    assert model.dtype == theirs
    ours = zoo.build(spec, "random", dtype=theirs)
    ids = torch.arange(4)[None]
    with torch.no_grad():
        difference = (model(ids).logits.float() - ours(ids).logits.float()).abs().max()
    assert difference <= (1e-5 if dtype == "fp32" else 0.05)


def test_the_same_from_python(tmp_path: Path) -> None:
    spec = gpt2(head={"kind": "language_modeling"})
    zoo.convert(spec, "random", tmp_path / "out")
    assert zoo.import_checkpoint(tmp_path / "out").head == spec.head
    zoo.convert(spec, "random", tmp_path / "out", dtype="fp16")  # what was converted may be replaced
    with pytest.raises(UserError, match="fits no class of llama"):
        zoo.convert(spec, "random", tmp_path / "other", family="llama")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
