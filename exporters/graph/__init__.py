"""ONNX graphs before they are written: traced, translated, fused, and declared with their weights."""
