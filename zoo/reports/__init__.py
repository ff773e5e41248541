"""Parameters and costs of a built model, read from its modules and its traced graph."""
