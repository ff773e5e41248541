"""Damaged checkpoints: each gives weights or a message, soon, and runs nothing."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

from tests.zoo.checkpoints.gguf_files import write as write_gguf
from tests.zoo.fuzz.guard import outcome
from tests.zoo.fuzz.mutations import changed_bytes, mutated, text_of
from tests.zoo.tiny import bert, gpt2
from zoo.builder import assemble
from zoo.checkpoints.converting import convert
from zoo.checkpoints.open_weights import open_weights
from zoo.configs.importing import import_spec
from zoo.weights.files import TensorFiles
from zoo.weights.materialize import materialize
from zoo.weights.names import INDEX, PICKLED_SINGLE, SINGLE

pytestmark = pytest.mark.slow

DRAWS = 600
relaxed = settings(max_examples=DRAWS, deadline=None, suppress_health_check=list(HealthCheck), database=None)

SENTENCE = {
    "kind": "pooled",
    "pooling": "mean",
    "activation": "tanh",
    "normalize": True,
    "output": "sentence_embedding",
}
LLAMA = LlamaConfig(
    vocab_size=24, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12, head_dim=4,
    max_position_embeddings=32,
)  # fmt: skip


def _single(place: Path) -> None:
    convert(gpt2(), "random", place)


def _shards(place: Path) -> None:
    convert(gpt2(), "random", place, shard=2000)


def _sentence(place: Path) -> None:
    convert(bert(head=SENTENCE), "random", place)


def _pickled(place: Path) -> None:
    _single(place)
    tensors = {name: stored.read() for name, stored in TensorFiles.open(place / SINGLE).tensors.items()}
    (place / SINGLE).unlink()
    torch.save(tensors, place / PICKLED_SINGLE)


def _legacy(place: Path) -> None:
    _single(place)
    tensors = {name: stored.read() for name, stored in TensorFiles.open(place / SINGLE).tensors.items()}
    (place / SINGLE).unlink()
    torch.save(tensors, place / PICKLED_SINGLE, _use_new_zipfile_serialization=False)


def _gguf(place: Path) -> None:
    write_gguf(LlamaForCausalLM(LLAMA), place / "model.gguf")


MAKERS: dict[str, Callable[[Path], None]] = {
    "safetensors": _single, "shards": _shards, "sentence": _sentence, "pickled": _pickled, "legacy": _legacy, "gguf": _gguf,
}  # fmt: skip


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A checkpoint of each kind."""
    made = {}
    for name, make in MAKERS.items():
        made[name] = tmp_path_factory.mktemp(name)
        make(made[name])
    return made


def read(directory: Path) -> None:
    """Import a checkpoint and fill its model."""
    files = sorted(directory.glob("*.gguf"))
    path = files[0] if files else directory
    spec = import_spec(path, name="x")
    if sum(stack.depth for _, stack in spec.stacks()) > 50 or spec.d_model > 4096:
        return
    model = assemble(spec)
    source = open_weights(str(path), model, spec)
    if sum(parameter.numel() for parameter in model.parameters()) < 10**7:
        materialize(model, source)


def damage(directory: Path, random: Random) -> None:
    """Change one or two files of a checkpoint."""
    files = [
        path
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name not in ("spec.yaml", "conversion.json")
    ]
    for path in random.sample(files, min(len(files), random.choice((1, 1, 1, 2)))):
        match random.randrange(10):
            case 0:
                path.unlink()
                _put_something_else(path, random)
            case 1:
                os.truncate(path, random.randrange(path.stat().st_size + 1))
            case _:
                path.write_bytes(_damaged(path, random))


def _put_something_else(path: Path, random: Random) -> None:
    match random.randrange(5):
        case 0:
            path.mkdir()
        case 1:
            os.mkfifo(path)
        case 2:
            path.symlink_to(path.name)
        case 3:
            path.write_bytes(b"")
        case _:
            pass


def _damaged(path: Path, random: Random) -> bytes:
    content = path.read_bytes()
    if path.suffix == ".json":
        return text_of(mutated(json.loads(content), random), random)
    if path.suffix == ".safetensors" and random.random() < 0.6:
        length = int.from_bytes(content[:8], "little")
        header = text_of(mutated(json.loads(content[8 : 8 + length]), random), random)
        return len(header).to_bytes(8, "little") + header + content[8 + length :]
    return changed_bytes(content, random, random.choice((64, 600, None)))


@relaxed
@given(name=st.sampled_from(sorted(MAKERS)), seed=st.integers(0, 2**32))
def test_any_damage(
    name: str, seed: int, originals: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.getbasetemp() / "damaged"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(originals[name], place)
    damage(place, Random(seed))
    outcome(lambda: read(place))


def test_undamaged_files_are_read(originals: dict[str, Path]) -> None:
    for place in originals.values():
        assert outcome(partial(read, place)) == "done"


def test_a_shard_that_is_a_surrogate_is_refused(tmp_path: Path) -> None:
    save_file({"a": torch.ones(1)}, tmp_path / "1.safetensors")
    (tmp_path / INDEX).write_text('{"weight_map": {"a": "\\ud800"}}')
    assert "an unpaired surrogate" in outcome(lambda: TensorFiles.open(tmp_path))
