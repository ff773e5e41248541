"""PyTorch's own exporter, for components that cannot be traced."""
