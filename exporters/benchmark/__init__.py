"""The speed of exports, compared with each other and with PyTorch: see :mod:`exporters.benchmark.bench`."""
