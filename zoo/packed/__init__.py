"""Quantized checkpoints of the Hugging Face formats: what their tensors stand for, under the names of float checkpoints."""
