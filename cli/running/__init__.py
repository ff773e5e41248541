"""`zoo run`: its output."""
