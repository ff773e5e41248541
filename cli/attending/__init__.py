"""`zoo attend`: reading its inputs, and maps in the terminal."""
