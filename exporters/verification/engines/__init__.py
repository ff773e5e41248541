"""Engines: the runtimes and compilers that take the files, each in a separate environment."""
