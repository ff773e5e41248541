"""A head for ordered classes."""
