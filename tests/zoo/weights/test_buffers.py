"""Persistent buffers: stored, read, drawn and exported like parameters, but neither trained nor counted."""

import onnxruntime
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

import specs.kinds.feed_forward as spec
from exporters.export import export
from exporters.steps.options import ExportOptions
from tests.exporters.models import stored
from tests.zoo.tiny import gpt2
from zoo import registry
from zoo.builder import assemble
from zoo.checkpoints.open_weights import open_weights
from zoo.checkpoints.write import stored_tensors
from zoo.checks.behaviour import run_checks
from zoo.checks.probe import ProbeWeights
from zoo.checks.subject import subject_of
from zoo.components.feed_forward import MLP
from zoo.context import BuildContext
from zoo.core.initialization import Distribution
from zoo.families.own import OWN
from zoo.families.registry import family
from zoo.reports.parameters import parameter_report
from zoo.weights.materialize import materialize
from zoo.weights.random import RandomWeights
from zoo.weights.source import WeightError

SHIFT, TABLE, SCRATCH = (f"decoder.blocks.1.feed_forward.{leaf}" for leaf in ("shift", "table", "scratch"))
SCALE = "decoder.blocks.1.feed_forward.scale"


class Shifted(MLP):
    """An MLP with a buffer that checkpoints must have, a buffer and a parameter that are fixed, and one of passage."""

    shift: Tensor
    table: Tensor

    def __init__(self, spec: spec.MLP, context: BuildContext) -> None:
        super().__init__(spec, context)
        self.register_buffer("shift", torch.empty(context.d_model))
        self.register_buffer("table", torch.empty(2, context.d_model))
        self.register_buffer("scratch", torch.empty(3), persistent=False)
        self.scale = nn.Parameter(torch.empty(context.d_model), requires_grad=False)

    def initial(self, leaf: str) -> Distribution | None:
        return Distribution(constant=0.5) if leaf == "shift" else None

    def fixed(self, leaf: str) -> Tensor | None:
        values = {"table": torch.arange(16.0).view(2, 8), "scale": torch.full((8,), 2.0)}
        return values.get(leaf)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * self.scale + self.shift + self.table[1]


@pytest.fixture(autouse=True)
def _built(monkeypatch):
    monkeypatch.setitem(registry._builders, spec.MLP, Shifted)


def filled(source=None):
    model = assemble(gpt2())
    materialize(model, source or RandomWeights(model, gpt2()))
    return model


def tensors(model: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def test_they_are_drawn_or_have_their_fixed_value():
    model = filled()
    state = model.state_dict()
    assert torch.equal(state[SHIFT], torch.full((8,), 0.5))
    assert torch.equal(state[TABLE], torch.arange(16.0).view(2, 8))
    assert torch.equal(state[SCALE], torch.full((8,), 2.0))
    assert not isinstance(dict(model.named_buffers())[SHIFT], nn.Parameter)
    assert not dict(model.named_parameters())[SCALE].requires_grad


def test_buffers_are_not_counted_and_fixed_parameters_are():
    with_buffers = parameter_report(gpt2()).total_parameters
    registry._builders[spec.MLP] = MLP
    assert with_buffers == parameter_report(gpt2()).total_parameters + 2 * 8


def test_they_are_written_and_read_back(tmp_path):
    model = filled(ProbeWeights(assemble(gpt2()), gpt2()))
    written = dict(stored_tensors(model, gpt2(), OWN))
    assert {SHIFT, TABLE, SCALE} <= written.keys()
    assert SCRATCH not in written
    save_file(written, tmp_path / "model.safetensors")
    source = open_weights(str(tmp_path), assemble(gpt2()), gpt2())
    again = filled(source)
    assert all(torch.equal(again.state_dict()[name], tensor) for name, tensor in written.items())
    assert source.raw(SHIFT) is not None


def test_a_checkpoint_may_lack_only_fixed_buffers(tmp_path):
    written = dict(stored_tensors(filled(), gpt2(), OWN))
    for name in [name for name in written if name.endswith((".table", ".scale")) and "blocks" in name]:
        del written[name]
    save_file(written, tmp_path / "model.safetensors")
    again = filled(open_weights(str(tmp_path), assemble(gpt2()), gpt2()))
    assert torch.equal(again.state_dict()[TABLE], torch.arange(16.0).view(2, 8))
    del written[SHIFT]
    save_file(written, tmp_path / "model.safetensors")
    with pytest.raises(WeightError, match=f"1 missing\n  missing: {SHIFT}"):
        open_weights(str(tmp_path), assemble(gpt2()), gpt2())


def test_a_family_need_not_name_fixed_buffers():
    with pytest.raises(WeightError) as caught:
        dict(stored_tensors(filled(), gpt2(), family("gpt2").tensors))
    assert SHIFT in str(caught.value)
    assert TABLE not in str(caught.value)


def test_they_are_exported_with_their_values_and_checked(tmp_path):
    result = export(gpt2(), tmp_path / "x", ExportOptions())
    assert result.verification is not None
    assert result.verification.passed
    data = stored(tmp_path / "x")
    assert torch.equal(data[SHIFT], torch.full((8,), 0.5))
    assert torch.equal(data[TABLE], torch.arange(16.0))
    onnxruntime.InferenceSession(tmp_path / "x" / "model.onnx", providers=["CPUExecutionProvider"])
    assert all(check.status != "failed" for check in run_checks(subject_of(gpt2())))
