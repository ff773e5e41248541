"""Checkpoints of other projects: under which names, and in which layouts, each family stores its tensors."""
