"""From the weights of one spec to those of a variant: layers, heads, vocabularies and tables carried over by stated rules."""
