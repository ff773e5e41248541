"""Families of decoders with states of constant size."""
