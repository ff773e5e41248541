"""Rounding of weights: the codes of their values, chosen for the inputs of their layers, and the bits of each matrix."""
