"""Does it learn: the same short training run for several specs, with equal seeds, on the same tokens in the same order."""
