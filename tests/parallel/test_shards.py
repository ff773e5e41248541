"""The part of a tensor that a process holds, without other processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.testing._internal.distributed.fake_pg import FakeStore

import zoo
from tests.parallel.models import MODELS
from zoo.core.tensors import weight_tensors
from zoo.parallel.shards import own_box


@pytest.fixture
def _first_of_four() -> Iterator[None]:
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("_first_of_four")
def test_fsdp_cuts_the_shards_of_tensor_parallelism() -> None:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    tensors = dict(weight_tensors(zoo.parallelize(zoo.build(MODELS["tied"]), mesh)))
    assert own_box(tensors["embedding.token.weight"]) == ((0, 8), (0, 16))  # of 32 tokens
    for tensor in tensors.values():
        assert isinstance(tensor, DTensor)
        assert [end - begin for begin, end in own_box(tensor)] == list(tensor.to_local().shape)
