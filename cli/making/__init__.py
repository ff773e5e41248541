"""`zoo make`: its progress and output."""
