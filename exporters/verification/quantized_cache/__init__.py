"""The PyTorch model with the rounded keys and values of a quantized cache."""
