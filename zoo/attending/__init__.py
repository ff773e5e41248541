"""What attends to what: the weights with which a model's attentions mix values, read while it runs."""
