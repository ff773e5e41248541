"""Families that read images, and those that match images and texts."""
