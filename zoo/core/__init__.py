"""What every room needs: tensors, precision, sharding, names, units and progress."""
