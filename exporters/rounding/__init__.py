"""Rounding of weights: codes chosen for the inputs of layers, and the bits of each matrix."""
