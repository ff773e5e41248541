"""Quantized checkpoints in Hugging Face formats, read under the names of float checkpoints."""
