"""Self-contained modeling files for transformers: the forward of a model's own components, specialized to its spec."""
