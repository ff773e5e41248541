"""Weights in few bits: how they are rounded, how they lie in the data file, and the operations that read them."""
