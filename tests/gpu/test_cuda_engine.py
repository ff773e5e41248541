"""The engine ``cuda`` computes what PyTorch does, and sees a graph that is wrong.

With GPU_TESTS_ON=cpu the same tests run on the CPU provider, which shows that they work, and nothing about a GPU.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from exporters.verification import engine_claim
from exporters.verification.engines.table import ENGINES
from exporters.verification.result import VerificationError
from tests.exporters.models import verified, written
from tests.exporters.verification.engines.sabotage import Change, a_mask, a_scale, an_axis, sabotaged
from tests.gpu.test_targets import DEVICE, HERE
from tests.zoo.tiny import gpt2

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not HERE, reason="needs a CUDA device")]


@pytest.fixture(autouse=True)
def _on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    if DEVICE == "cpu":
        monkeypatch.setitem(ENGINES, "cuda", replace(ENGINES["onnxruntime"], name="cuda"))


def test_the_engine_computes_the_same(tmp_path: Path) -> None:
    found = verified(gpt2(), tmp_path / "out", engines=("cuda",)).verification
    (result,) = found.engines
    assert result.outcome == "computed"


@pytest.mark.parametrize("change", [a_scale, a_mask, an_axis])
def test_a_wrong_graph_fails(change: Change, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_claim, "exact_file", lambda *arguments: sabotaged(change, *arguments))
    with pytest.raises(VerificationError, match=r"cuda.*: failed: .* allowed"):
        written(gpt2(), tmp_path / "out", engines=("cuda",))
    assert not (tmp_path / "out").exists()
