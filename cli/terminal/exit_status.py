"""Exit statuses other than 0, success."""

FAILED = 1
"""A check or verification failed, or two models differ."""
WRONG_INPUT = 2
"""The input was invalid."""
HUNG_UP = 129
"""The terminal was closed (SIGHUP)."""
INTERRUPTED = 130
"""Ctrl-C."""
READER_LEFT = 141
"""The reader of the output closed it, as ``head`` does (SIGPIPE)."""
TERMINATED = 143
"""The process was terminated (SIGTERM)."""
