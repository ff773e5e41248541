"""ONNX Runtime's WebGPU provider computes what PyTorch does, and sees a graph that is wrong.

Its adapter is SwiftShader, from Debian's package chromium.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx
import pytest

from exporters.export import export
from exporters.steps.options import ExportOptions
from exporters.verification.engines import prove
from exporters.verification.exact.graph import Constants, exact_file
from exporters.verification.result import VerificationError
from tests.exporters.reduced_presets import structure
from tests.zoo.tiny import bert

pytestmark = [pytest.mark.engines, pytest.mark.timeout(900)]


@pytest.mark.parametrize("name", ["bert-base", "llama-3.2-1b"])
def test_the_provider_computes_what_the_model_does(name: str, tmp_path: Path) -> None:
    options = ExportOptions(target="webgpu", engines=("webgpu",))
    verification = export(structure(name), tmp_path / "out", options).verification
    assert verification is not None
    (found,) = verification.engines
    print(f"{name}: {found}")
    assert found.outcome == "computed"
    assert (
        found.max_abs is not None
    )  # within the tolerances of verification, which are relative to the outputs


def test_what_an_adapter_cannot_run_is_named(tmp_path: Path) -> None:
    options = ExportOptions(target="webgpu", precision="q4f16", engines=("webgpu",))
    verification = export(bert(), tmp_path / "out", options).verification
    assert verification is not None
    assert "the files as stored were not run, as it has no float16 on this machine" in str(
        verification.engines[0]
    )


def test_a_wrong_scale_of_attention_fails_the_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def sabotaged(path: Path, half: object, constants: Constants) -> Iterator[Path]:
        with exact_file(path, half, constants) as place:  # type: ignore[arg-type]
            model = onnx.load(place, load_external_data=False)
            for node in model.graph.node:
                for attribute in node.attribute:
                    if node.op_type == "MultiHeadAttention" and attribute.name == "scale":
                        attribute.f *= 1.5
            onnx.save(model, place)
            yield place

    monkeypatch.setattr(prove, "exact_file", sabotaged)
    with pytest.raises(VerificationError, match=r"webgpu 0\.4.*: failed: .* allowed"):
        export(bert(), tmp_path / "out", ExportOptions(target="webgpu", engines=("webgpu",)))
    assert not (tmp_path / "out").exists()
