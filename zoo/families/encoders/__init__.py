"""Families of text encoders."""
