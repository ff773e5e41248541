"""Where an export runs: the rows of targets, providers and their kernels, sessions, and the first versions that compute a graph."""
