"""Whole weights, read or drawn into place: the values of their pieces, the same errors, and memory that returns to the system."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from specs.model.model import Model
from tests.zoo.checkpoints.test_checkpoints import GPT2, MIXTRAL, gpt2, mixtral, opened, stored
from zoo.builder import assemble
from zoo.core.tensors import weight_tensors
from zoo.families.common.tensors import Tensors
from zoo.machine.memory import return_released
from zoo.weights.memory_pages import in_own_pages
from zoo.weights.names import SINGLE
from zoo.weights.random import RandomWeights
from zoo.weights.source import WeightError

TABLE = "embedding.token.weight"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize(("names", "spec"), [(GPT2, gpt2()), (MIXTRAL, mixtral())])
def test_a_whole_weight_is_its_pieces(
    names: Tensors, spec: Model, dtype: torch.dtype, tmp_path: Path
) -> None:
    save_file({name: tensor.to(dtype) for name, tensor in stored(names, spec).items()}, tmp_path / SINGLE)
    source = opened(tmp_path, spec)
    for name, parameter in weight_tensors(assemble(spec)):
        values = source.whole(name, parameter)
        assert torch.equal(values, torch.cat([*source.pieces(name)]).view(parameter.shape)), name
        assert values.dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_whole_drawn_weight_is_its_pieces(dtype: torch.dtype) -> None:
    spec = gpt2(vocab_size=2**19 + 1)  # one row more than a piece
    model: Any = assemble(spec, dtype)
    source = RandomWeights(model, spec, dtype=dtype)
    pieces = [*source.pieces(TABLE)]
    assert len(pieces) == 2
    assert torch.equal(source.whole(TABLE, model.embedding.token.weight).flatten(), torch.cat(pieces))


@pytest.mark.parametrize(
    ("value", "message"),
    [(float("nan"), "has NaN or infinite values"), (1e300, "has values that are too large for float32")],
)
def test_a_whole_weight_is_checked(value: float, message: str, tmp_path: Path) -> None:
    tensors = {name: tensor.double() for name, tensor in stored(GPT2, gpt2()).items()}
    tensors["transformer.wte.weight"][3, 2] = value
    save_file(tensors, tmp_path / SINGLE)
    model: Any = assemble(gpt2())
    with pytest.raises(WeightError, match=rf"transformer\.wte\.weight {message}"):
        opened(tmp_path, gpt2()).whole(TABLE, model.embedding.token.weight)


def test_a_file_that_shrinks_is_refused(tmp_path: Path) -> None:
    save_file(stored(GPT2, gpt2()), tmp_path / SINGLE)
    source, weights = opened(tmp_path, gpt2()), dict(weight_tensors(assemble(gpt2())))
    os.truncate(tmp_path / SINGLE, 1000)
    name = "decoder.blocks.1.feed_forward.up.weight"
    with pytest.raises(WeightError, match="the file became shorter while it was read"):
        source.whole(name, weights[name])


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_of_large_tensors_returns_to_the_system_when_they_are_released() -> None:
    before = resident()
    with ThreadPoolExecutor(2) as threads:
        for _ in range(2):  # the allocator keeps no memory of the first large tensors, and most of later ones
            tensors = [*threads.map(lambda _: in_own_pages((2**22,), torch.float32).fill_(1), range(8))]
            assert resident() > before + 100e6
            kept = tensors.pop()
            tensors.clear()
        assert resident() < before + 60e6
    assert kept.sum() == 2**22


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, and only glibc can return memory")
def test_memory_that_the_allocator_keeps_returns_to_the_system() -> None:
    before = resident()
    tensors = [torch.ones(16_000) for _ in range(2_000)]
    kept = tensors.pop()  # at the end of the heap, which is then not cut
    tensors.clear()
    return_released()
    assert resident() < before + 50e6
    assert kept.sum() == 16_000


def resident() -> int:
    """The bytes of memory of this process."""
    with open("/proc/self/statm", encoding="ascii") as pages:
        return int(pages.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
