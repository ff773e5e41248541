"""Scripts that run in an engine's own interpreter: they import nothing of this project but their protocol."""
