"""Checkpoints of other projects: the names and layouts of each family's tensors."""
