"""Running exports with ONNX Runtime alone: nothing here imports torch."""
