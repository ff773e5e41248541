"""The model families, one file each; ``common`` holds the shared parts."""
