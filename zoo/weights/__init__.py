"""Where weights come from: drawn at random, or read from files.  Always one tensor at a time."""
