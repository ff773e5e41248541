"""Helpers for every room: tensors, precision, sharding, names, units and progress."""
