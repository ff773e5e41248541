"""Shared parts of the families: reading and writing of fields and tensors, and common components."""
