"""Whether the written files compute what the PyTorch model computes, in ONNX Runtime and other engines."""
