"""`zoo compare`: its progress and output."""
