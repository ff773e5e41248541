"""The runtime side of an export: targets, execution providers and their kernels, sessions, and minimum versions."""
