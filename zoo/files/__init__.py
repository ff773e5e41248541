"""Files and directories that appear whole or not at all, and take nothing of the user's with them."""
