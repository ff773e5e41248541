"""Errors that grow with the position of a token: the runtime keeps the order of operations, and verification sees a long case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from safetensors.torch import save_file

from exporters.export import export
from exporters.steps.options import ExportOptions
from exporters.verification.result import VerificationError
from specs.model.model import Model
from tests.exporters.verification.test_verification import operation
from tests.zoo.tiny import BLOCK, gpt2
from zoo.builder import ZooModel, assemble
from zoo.checks.probe import ProbeWeights
from zoo.weights.materialize import materialize

TOKENS = 2000
SCALING = {"kind": "dynamic_ntk", "factor": 2.0, "original_context_length": 1024}


def scaled() -> Model:
    """A decoder whose rotary frequencies depend on the length of the input, with heads wide enough for high ones."""
    block = {**BLOCK, "attention": {"kind": "multi_head", "heads": 2}}
    layers = {"layers": 1, "block": block}
    return gpt2(
        d_model=128, context_length=4096, decoder=layers, position={"kind": "rope", "scaling": SCALING}
    )


def sparse_mixer() -> Model:
    """A decoder whose routers divide 1 by a sum."""
    expert = {"kind": "mlp", "hidden": 8, "activation": "gelu"}
    router = {"scores": "sparse_mixer", "normalize": False}
    mixture = {"kind": "mixture", "experts": 3, "top_k": 2, "expert": expert, "router": router}
    return gpt2(decoder={"layers": 1, "block": {**BLOCK, "feed_forward": mixture}})


def probed(spec: Model) -> ZooModel:
    model = assemble(spec)
    materialize(model, ProbeWeights(model, spec))
    return model


def test_frequencies_that_depend_on_the_length_hold_far_from_the_start(tmp_path: Path) -> None:
    model, weights = probed(scaled()), tmp_path / "model.safetensors"
    save_file({name: each.detach().clone() for name, each in model.named_parameters()}, weights)
    export(model.spec, tmp_path / "x", ExportOptions(weights=str(weights), verify=False))
    session = onnxruntime.InferenceSession(tmp_path / "x/model.onnx", providers=["CPUExecutionProvider"])
    ids = torch.randint(model.spec.vocab_size or 0, (1, TOKENS), generator=torch.Generator().manual_seed(0))
    given: dict[str, Any] = {"input_ids": ids.numpy(), "attention_mask": np.ones((1, TOKENS), np.int64)}
    empty = {each.name: np.zeros((1, 2, 0, 64), np.float32) for each in session.get_inputs()}
    keys = session.run(["present.0.key"], empty | given)[0]
    with torch.no_grad():
        expected = model(ids).present_key_values[0][0].numpy()
    np.testing.assert_allclose(keys, expected, rtol=0, atol=5e-5)  # 3.5e-4 where 1 / x * y became y / x


@pytest.mark.parametrize("spec", [scaled(), sparse_mixer()], ids=["frequencies", "routers"])
def test_no_graph_divides_one_by_what_may_be_a_factor(spec: Model, tmp_path: Path) -> None:
    export(spec, tmp_path / "x", ExportOptions(weights="none", verify=False))
    graph = onnx.load(tmp_path / "x/model.onnx", load_external_data=False).graph
    ones = {
        each.name
        for each in graph.initializer
        if not each.external_data and (onnx.numpy_helper.to_array(each) == 1).all()
    }
    assert "Reciprocal" in {node.op_type for node in graph.node}
    assert not [node.name for node in graph.node if node.op_type == "Div" and node.input[0] in ones]


def test_verification_sees_tokens_far_from_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def op(write: Any, graph: Any, name: str, *inputs: Any, **attributes: Any) -> Any:
        if name == "Cos":
            inputs = (write("Min", *inputs, graph.constant(400.0, torch.float32)),)
        return write(name, *inputs, **attributes)

    operation(monkeypatch, op)
    spec = gpt2(context_length=1024, position={"kind": "rope"})
    with pytest.raises(VerificationError) as error:
        export(spec, tmp_path / "x")
    failed = {each.case for each in error.value.verification.comparisons if not each.passed}
    assert failed == {"far from the start"}
