"""The kinds of components that a spec can name, one file for each group."""
