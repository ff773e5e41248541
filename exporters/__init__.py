"""From a built model to verified ONNX files: see :mod:`exporters.export`."""
