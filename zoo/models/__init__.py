"""Whole models: an encoder, a decoder, or an encoder with a decoder."""
