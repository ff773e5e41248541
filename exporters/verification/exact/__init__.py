"""Graphs without the rounding of activations: what a file computes apart from its precision."""
