"""The data file of an export: its layout, digests, and the weights that it stores."""
