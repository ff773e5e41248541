"""Families that read images among the tokens of a decoder."""
