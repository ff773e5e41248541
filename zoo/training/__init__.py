"""Comparative training: the same short run for several specs, with equal seeds and the same tokens in the same order."""
