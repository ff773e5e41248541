"""What a built model consists of and costs, read from the module itself and from its traced graph."""
