"""The built-in components: the builders of each file of :mod:`specs.kinds` in a file of the same name, and those that extend others.

A file is imported when one of its kinds is built, or a kind that derives from one.
"""

import importlib
import importlib.util

EXTENSIONS = {
    "attention": ("attention_variations", "block_summaries", "reused_keys_values"),
    "block": ("block_extensions", "low_rank_residual", "norm_placements"),
    "relative_bias": ("gated_bias", "block_summaries"),
    "resampler": ("connector",),
}
"""The files with further builders and extensions of the kinds in a file."""


def load(kinds: str) -> None:
    """Import the builders of the kinds in a file of :mod:`specs.kinds`."""
    for file in (kinds, *EXTENSIONS.get(kinds, ())):
        if importlib.util.find_spec(f"{__name__}.{file}") is not None:
            importlib.import_module(f"{__name__}.{file}")
