"""The WebGPU provider: its kernels as data, and graphs on it."""
