"""How fast exports run, beside each other and beside PyTorch: see :mod:`exporters.benching.bench`."""
