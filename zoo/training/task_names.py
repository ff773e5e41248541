"""The names of tasks."""

COPY, REVERSE, RECALL, ADDITION = SYNTHETIC = ("copy", "reverse", "recall", "addition")
NEXT_BYTE, MASKED_BYTE = OF_TEXT = ("next-byte", "masked-byte")
TASKS = (*SYNTHETIC, *OF_TEXT)
