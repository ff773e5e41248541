"""The way out: what our tracer has no emitter for goes through PyTorch's exporter, and is verified all the same."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor

from exporters.export import export
from exporters.graph.translate import NoEmitterError
from exporters.steps.options import ExportOptions
from exporters.steps.via_torch.export import TorchExportError
from exporters.verification.cases import cases
from exporters.verification.result import VerificationError
from specs.model.model import Model
from tests.cli.program import refused
from tests.exporters.models import GRAPH_ONLY, verified, written
from tests.exporters.whole.test_mixers import MIXERS, hybrid
from tests.thinned import one_in
from tests.zoo.tiny import BLOCK, bert, clip, gpt2, llava, owlvit, t5, vit, whisper
from zoo.components.feed_forward import MLP
from zoo.tracing.tracer import UntraceableError


def einsum(self: MLP, x: Tensor) -> Tensor:
    """An MLP in a way that has no emitter."""
    hidden = torch.einsum("btd,hd->bth", x, self.up.weight)
    return self.down(self.inner(hidden if self.up.bias is None else hidden + self.up.bias))


def untraceable(self: MLP, x: Tensor) -> Tensor:
    """An MLP that makes a tensor on the way."""
    return self.down(self.inner(self.up(x) + torch.full((1,), 0.25)))


@pytest.fixture(params=[einsum, untraceable])
def odd(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(MLP, "forward", request.param)
    return request.param


LIVELY = {"initialization": {"kind": "xavier_uniform"}}
MODELS = [bert(**LIVELY), gpt2(**LIVELY), t5(), vit(**LIVELY), whisper(**LIVELY), clip(), owlvit(), llava()]
SEEING_BOTH_WAYS: dict[str, Any] = {"layers": 2, "block": BLOCK, "bidirectional": "image"}


def test_without_the_way_out_the_module_and_the_function_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MLP, "forward", einsum)
    with pytest.raises(NoEmitterError) as error:
        export(gpt2(), tmp_path / "x", GRAPH_ONLY)
    assert str(error.value) == (
        "decoder.blocks.0.feed_forward calls einsum, which has no ONNX emitter\n"
        f"  at {__file__}:{einsum.__code__.co_firstlineno + 2}: "
        'hidden = torch.einsum("btd,hd->bth", x, self.up.weight)\n'
        "  Register it with zoo.ops.register_operation and an emitter, or export with via torch."
    )
    monkeypatch.setattr(MLP, "forward", untraceable)
    with pytest.raises(
        UntraceableError,
        match=r"decoder\.blocks\.0\.feed_forward cannot be traced: .*\n  at .*test_via_torch",
    ):
        export(gpt2(), tmp_path / "x", GRAPH_ONLY)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("library", ["onnxscript", "onnx_ir"])
def test_its_libraries_are_an_extra(library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    for command in ("export", "build"):
        message = refused(command, "tiny-gpt", "--via", "torch", "-o", str(tmp_path / "x"))
        assert message == "--via torch needs libraries\n  Install them: pip install 'zoo[torch-export]'.\n"
    assert not list(tmp_path.iterdir())
    ExportOptions(via="fx")


@pytest.mark.slow
@pytest.mark.parametrize("spec", MODELS, ids=[spec.name for spec in MODELS])
def test_every_architecture_goes_through_pytorchs_exporter(odd: Any, spec: Model, tmp_path: Path) -> None:
    result = verified(spec, tmp_path / "x", via="torch")
    assert {c.case for c in result.verification.comparisons} == {case.name for case in cases(spec)}
    (tmp_path / "x").rename(tmp_path / "moved")
    for name, facts in result.graphs.items():
        path = tmp_path / "moved" / name
        onnx.checker.check_model(path)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        for values, named in (
            (session.get_inputs(), facts["inputs"]),
            (session.get_outputs(), facts["outputs"]),
        ):
            assert [value.name for value in values] == list(named)
        assert facts["inputs"] == _facts_via_fx(spec, tmp_path)[name]["inputs"]
        assert list(facts["outputs"]) == list(_facts_via_fx(spec, tmp_path)[name]["outputs"])
        recorded = {entry.key for entry in onnx.load(path, load_external_data=False).metadata_props}
        assert {"zoo.spec", "zoo.target"} <= recorded


@pytest.mark.slow
def test_images_seen_in_both_directions_go_through_pytorchs_exporter(tmp_path: Path) -> None:
    result = verified(llava(decoder=SEEING_BOTH_WAYS), tmp_path / "x", via="torch")
    assert "tokens_ahead" in result.graphs["model.onnx"]["inputs"]


def _facts_via_fx(spec: Model, directory: Path) -> dict[str, dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MLP, "forward", lambda self, x: self.down(self.inner(self.up(x))))
        return export(spec, directory / "fx", GRAPH_ONLY).graphs


LOOPS = {
    "gated_delta_net": "gated_delta_rule",
    "kimi_delta_attention": "gated_delta_rule",
    "linear_attention": "linear_attention",
    "mamba": "selective_scan",
    "mamba2": "linear_attention",
    "rg_lru": "diagonal_recurrence",
    "rwkv7": "generalized_delta_rule",
}


def test_every_mixer_is_exported_or_refused() -> None:
    assert {*LOOPS, "short_convolution", "rwkv_channel_mix"} == {*MIXERS}


@one_in(3)
@pytest.mark.parametrize("kind", LOOPS)
def test_a_loop_over_tokens_is_refused(kind: str, tmp_path: Path) -> None:
    with pytest.raises(TorchExportError) as error:
        written(hybrid(kind), tmp_path / "x", via="torch")
    assert str(error.value) == (
        f"torch.onnx.export cannot export model: NotImplementedError: {LOOPS[kind]} loops over tokens, and the exporter "
        "would fix their number. Export with via fx"
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_both_ways_give_the_same_numbers(tmp_path: Path) -> None:
    for via in ("fx", "torch"):
        written(bert(**LIVELY), tmp_path / via, via=via, verify=False, seed=3)
    outputs = []
    for via in ("fx", "torch"):
        session = onnxruntime.InferenceSession(
            tmp_path / via / "model.onnx", providers=["CPUExecutionProvider"]
        )
        ids = torch.arange(10).reshape(2, 5).numpy()
        mask = torch.tensor([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]]).numpy()
        outputs.append(
            torch.from_numpy(
                session.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": ids % 2})[0]
            )
        )
    torch.testing.assert_close(outputs[0][0], outputs[1][0], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(outputs[0][1, 2:], outputs[1][1, 2:], atol=1e-5, rtol=1e-5)


@pytest.mark.slow
def test_a_wrong_export_is_caught_here_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def differs(self: MLP, x: Tensor) -> Tensor:
        return self.down(self.inner(self.up(x))) * (1.01 if torch.compiler.is_exporting() else 1.0)

    monkeypatch.setattr(MLP, "forward", differs)
    with pytest.raises(VerificationError):
        written(bert(**LIVELY), tmp_path / "x", via="torch")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_failures_of_the_pytorch_exporter_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decides(self: MLP, x: Tensor) -> Tensor:
        return self.down(self.inner(self.up(x))) if x.sum().item() > 0 else x

    monkeypatch.setattr(MLP, "forward", decides)
    with pytest.raises(TorchExportError, match=r"^torch\.onnx\.export cannot export model: \w+: [^\n]+$"):
        written(bert(), tmp_path / "x", via="torch", verify=False)
    assert not list(tmp_path.iterdir())
