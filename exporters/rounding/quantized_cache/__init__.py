"""Keys and values cached in 8 or 4 bits: their codes, the calibration of their scales, and the same arithmetic in
PyTorch."""
