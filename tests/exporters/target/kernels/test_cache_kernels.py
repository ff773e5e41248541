"""The providers whose attention takes 8-bit floats in its KV cache, as the guide to targets has them."""

from __future__ import annotations

import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from exporters.target.kernels.table import table_of
from exporters.target.providers import CUDA
from exporters.target.targets import CONTRIB

FLOAT8, FLOAT, FLOAT16, INT32, INT8 = (
    getattr(TensorProto, name) for name in ("FLOAT8E4M3FN", "FLOAT", "FLOAT16", "INT32", "INT8")
)


def attention(cache: int, dtype: int) -> bytes:
    """GroupQueryAttention of two heads of 16 with a quantized cache, one scale per channel."""
    inputs = [("q", dtype, [1, 1, 32]), ("k", dtype, [1, 1, 32]), ("v", dtype, [1, 1, 32])]
    inputs += [(name, cache, [1, 2, 3, 16]) for name in ("past_k", "past_v")]
    inputs += [("last", INT32, [1]), ("total", INT32, [])]
    inputs += [(name, FLOAT, [1, 2, 1, 16]) for name in ("scale_k", "scale_v")]
    names = [name for name, _, _ in inputs]
    node = helper.make_node(
        "GroupQueryAttention", [*names[:7], *[""] * 5, *names[7:]], ["y", "present_k", "present_v"], domain=CONTRIB,
        num_heads=2, kv_num_heads=2, k_quant_type="PER_CHANNEL", v_quant_type="PER_CHANNEL", kv_cache_bit_width=8,
    )  # fmt: skip
    outputs = [("y", dtype), ("present_k", cache), ("present_v", cache)]
    graph = helper.make_graph(
        [node], "cached", [helper.make_tensor_value_info(*value) for value in inputs],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(CONTRIB, 1)]
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return model.SerializeToString()


@pytest.mark.parametrize("dtype", [FLOAT, FLOAT16])
def test_only_cuda_takes_8_bit_floats_in_caches(dtype: int) -> None:
    onnxruntime.InferenceSession(attention(INT8, dtype), providers=["CPUExecutionProvider"])
    with pytest.raises(Exception, match=r"NOT_IMPLEMENTED.*GroupQueryAttention"):
        onnxruntime.InferenceSession(attention(FLOAT8, dtype), providers=["CPUExecutionProvider"])
    table, cache = table_of(CUDA), ["float8e4m3fn"] * 2
    assert table is not None
    for activations, taken in (("float16", True), ("bfloat16", True), ("float", False)):
        inputs = [*[activations] * 3, *cache]
        assert table.computes("GroupQueryAttention", 21, inputs, [], CONTRIB) == taken
