"""The spec language: what an architecture is, without a tensor."""

import time

READ_SINCE = time.time_ns()
"""The time before which this process has read no file of the package."""
