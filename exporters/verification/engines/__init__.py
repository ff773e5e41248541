"""Engines: the real runtimes and compilers that take the files, each in an environment of its own."""
