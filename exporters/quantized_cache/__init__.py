"""Keys and values cached in 8 or 4 bits: their codes, the scales that are calibrated for them, and the same in PyTorch."""
