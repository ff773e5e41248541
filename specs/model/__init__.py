"""A whole model: its stacks, and the rules across them."""
