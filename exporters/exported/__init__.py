"""An exported directory as an input: loaded, verified and evaluated again."""
