"""What a built model consists of, read from the module itself."""
