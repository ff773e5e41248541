"""The kernels that execution providers have, and what that means for a graph."""
