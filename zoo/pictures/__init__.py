"""Pictures of numbers: heat maps and curves."""
