"""What the exit statuses mean, besides 0: done."""

FAILED = 1
"""A check or verification failed, or two models differ."""
WRONG_INPUT = 2
"""The input was wrong."""
HUNG_UP = 129
"""The terminal is gone."""
INTERRUPTED = 130
"""Ctrl-C."""
READER_LEFT = 141
"""What reads the output has closed it, as ``head`` does."""
TERMINATED = 143
"""The process was asked to end."""
