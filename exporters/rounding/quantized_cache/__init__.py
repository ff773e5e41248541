"""Quantized caches of keys and values: calibration of their scales, and checks of support."""
