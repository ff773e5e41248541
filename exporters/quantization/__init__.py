"""Weights in few bits: which blocks they have, how they lie in the data file, and the operations that read them."""
