"""Families that read audio."""
