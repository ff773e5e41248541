"""Forms of a spec: full, canonical, written out, and the difference of two."""
