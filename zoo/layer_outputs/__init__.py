"""Additional outputs of graphs: hidden states and attention weights of chosen layers."""
