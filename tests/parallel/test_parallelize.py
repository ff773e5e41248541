"""Models on several processes compute and learn what they do on one."""

from __future__ import annotations

import pytest
import torch
from torch.multiprocessing.spawn import ProcessRaisedException

from tests.parallel.models import MODELS
from tests.parallel.processes import on_processes
from tests.parallel.steps import MESHES, compare_all

ISSUED = ("encoder", "decoder", "encoder-decoder", "tied", "grouped-query", "mixture")
"""One model of each architecture and kind, compared in float32."""

OTHERS = tuple(name for name in MODELS if name not in (*ISSUED, "relative-key", "distances"))
"""The other components, compared in float64, as some amplify rounding."""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["dp", "tp", "sp"])
def test_two_processes_compute_what_one_does(way: str) -> None:
    on_processes(2, compare_all, ISSUED, way, torch.float32, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("way", MESHES)
def test_four_processes_compute_what_one_does(way: str) -> None:
    on_processes(4, compare_all, ISSUED, way, torch.float32, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("way", MESHES)
def test_every_component_is_cut_without_a_difference(way: str) -> None:
    on_processes(4, compare_all, OTHERS, way, torch.float64, 1e-10)


@pytest.mark.slow
def test_vectors_of_distances_are_cut_by_tensor_parallelism_alone() -> None:
    on_processes(2, compare_all, ("relative-key", "distances"), "tp", torch.float64, 1e-10)
    for name, kind in (("relative-key", "relative_key"), ("distances", "disentangled")):
        with pytest.raises(ProcessRaisedException, match=f"FSDP cannot cut {kind}"):
            on_processes(2, compare_all, (name,), "dp", torch.float64, 1e-10)
