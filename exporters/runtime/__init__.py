"""Running what was exported, through ONNX Runtime alone: nothing here imports torch."""
