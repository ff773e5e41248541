"""Keeping many models up to date: from a zoo file to content-addressed artefacts."""
