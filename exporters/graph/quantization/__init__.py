"""Quantized weights: their blocks, their layout in the data file, and the operations that read them."""
