"""What an exported directory records of itself, and checking that it still holds."""
