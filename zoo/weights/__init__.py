"""Sources of weights: drawn at random or read from files, always one tensor at a time."""
