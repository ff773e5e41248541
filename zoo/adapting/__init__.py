"""The weights of a variant from the weights of another spec: layers, heads, vocabularies and tables, by stated rules."""
