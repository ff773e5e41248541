"""Running exports with ONNX Runtime; this package does not import torch."""
