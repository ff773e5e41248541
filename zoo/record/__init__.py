"""The records of an exported directory, and the check that they still hold."""
