"""The providers whose mixtures read 4-bit floats, as the page on families has them, and those that weight experts as they are told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from exporters.target.kernels.table import table_of
from exporters.target.providers import CUDA, WEBGPU
from exporters.target.targets import CONTRIB
from tests.exporters.mixtures import MIXTURES
from tests.exporters.models import written

FLOAT, UINT8, EXPONENT = (getattr(TensorProto, name) for name in ("FLOAT", "UINT8", "FLOAT8E8M0"))


def mixture(scale: int) -> bytes:
    """QMoE of two experts of 32 x 32 in MXFP4, with scales of a type."""
    inputs = [("x", FLOAT, [1, 32]), ("logits", FLOAT, [1, 2])]
    inputs += [("up", UINT8, [2, 32, 16]), ("up_scale", scale, [2, 32, 1])]
    inputs += [("down", UINT8, [2, 32, 16]), ("down_scale", scale, [2, 32, 1])]
    inputs += [(name, FLOAT, [2]) for name in ("up_whole", "down_whole")]
    names = [name for name, _, _ in inputs]
    node = helper.make_node(
        "QMoE", [*names[:4], "", *names[4:6], *[""] * 8, *names[6:]], ["y"], domain=CONTRIB,
        k=1, quant_type="fp4", expert_weight_bits=4, block_size=32, activation_type="relu",
    )  # fmt: skip
    graph = helper.make_graph(
        [node], "mixed", [helper.make_tensor_value_info(*value) for value in inputs],
        [helper.make_tensor_value_info("y", FLOAT, None)],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(CONTRIB, 1)]
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=opsets, ir_version=12)
    return model.SerializeToString()


def test_only_cuda_reads_experts_of_4_bit_floats() -> None:
    with pytest.raises(Exception, match=r"NOT_IMPLEMENTED.*QMoE"):
        onnxruntime.InferenceSession(mixture(EXPONENT), providers=["CPUExecutionProvider"])
    inputs = ["float16", "float16", "uint8", "float8e8m0"]
    for provider, taken in ((CUDA, True), (WEBGPU, False)):
        table = table_of(provider)
        assert table is not None
        assert table.computes("QMoE", 21, inputs, [], CONTRIB) == taken


def test_the_cpu_reads_their_codes_as_integers() -> None:
    """Code 9 is 1 as an integer around 8, and -0.5 as a 4-bit float: two layers of 32 make 1024, or 0 after ReLU."""
    session = onnxruntime.InferenceSession(mixture(FLOAT), providers=["CPUExecutionProvider"])
    codes, scales = np.full((2, 32, 16), 0x99, np.uint8), np.ones((2, 32, 1), np.float32)
    inputs: dict[str, np.ndarray] = {
        "x": np.ones((1, 32), np.float32),
        "logits": np.array([[9, 0]], np.float32),
    }
    inputs |= dict.fromkeys(("up", "down"), codes) | dict.fromkeys(("up_scale", "down_scale"), scales)
    inputs |= dict.fromkeys(("up_whole", "down_whole"), np.ones(2, np.float32))
    (mixed,) = session.run(None, inputs)
    assert mixed == pytest.approx(1024.0)


@pytest.mark.parametrize("name", ["gpt-oss", "relu", "sigmoid"])
def test_cuda_gets_no_weights_of_experts(name: str, tmp_path: Path) -> None:
    """Its kernel has no input for them: weights are the softmax of the scores, times their sum where that is not 1."""
    written(MIXTURES[name], tmp_path / "x", target="cuda", precision="int4", weights="none", verify=False)
    graph = onnx.load(next((tmp_path / "x").rglob("*.onnx")), load_external_data=False).graph
    mixtures = [node for node in graph.node if node.op_type == "QMoE"]
    assert mixtures
    for node in mixtures:
        assert len(node.input) <= 8
        attributes = {part.name: helper.get_attribute_value(part) for part in node.attribute}
        assert attributes["normalize_routing_weights"] == 1
