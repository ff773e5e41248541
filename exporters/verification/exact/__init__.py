"""Exact forms: graphs without rounding of activations, which show errors other than precision."""
