"""Attention maps: the attention weights of a model, recorded while it runs."""
