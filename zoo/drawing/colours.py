"""The colours of drawings."""

COLOURS: dict[str, tuple[str, str]] = {
    "ground": ("#ffffff", "#14171c"),
    "panel": ("#f5f6f8", "#1c2027"),
    "text": ("#1a1e25", "#e7eaef"),
    "quiet": ("#545d6b", "#b4bcc9"),
    "line": ("#d8dce3", "#363d49"),
    "embedding": ("#cfe3fb", "#1d4269"),
    "position": ("#d3eeee", "#1c4d50"),
    "attention": ("#fbdcc0", "#6b3f14"),
    "mixer": ("#f6e7a6", "#5a4a0c"),
    "feed-forward": ("#cdebd6", "#1a5233"),
    "norm": ("#e5dcf6", "#48376e"),
    "head": ("#f9d3df", "#6c2840"),
    "other": ("#e3e6eb", "#3a414d"),
}
"""Colours by the custom property that sets them, on light ground and on dark."""
