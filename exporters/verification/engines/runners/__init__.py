"""Scripts that run in an engine's interpreter: they import nothing of this project except their protocol."""
