"""How weights are rounded: which codes their values get, for the inputs of their layers, and how many bits each matrix has."""
