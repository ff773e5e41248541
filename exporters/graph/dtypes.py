"""The ONNX element type of each PyTorch dtype."""

from __future__ import annotations

import onnx
import torch

from exporters.graph.content import INT4, UINT4

DTYPES = {
    torch.float32: onnx.TensorProto.FLOAT,
    torch.float16: onnx.TensorProto.FLOAT16,
    torch.bfloat16: onnx.TensorProto.BFLOAT16,
    torch.float64: onnx.TensorProto.DOUBLE,
    torch.float8_e8m0fnu: onnx.TensorProto.FLOAT8E8M0,
    torch.int64: onnx.TensorProto.INT64,
    torch.int32: onnx.TensorProto.INT32,
    torch.int8: onnx.TensorProto.INT8,
    torch.uint8: onnx.TensorProto.UINT8,
    INT4: onnx.TensorProto.INT4,
    UINT4: onnx.TensorProto.UINT4,
    torch.bool: onnx.TensorProto.BOOL,
}
