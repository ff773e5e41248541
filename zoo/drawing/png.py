"""A drawing as PNG."""

from __future__ import annotations

from pathlib import Path

from specs.errors import UserError
from zoo.drawing.svg import plain


def png(document: str, scale: float = 2.0) -> bytes:
    """The picture of an SVG, ``scale`` pixels for each of its own; the font is the one that its text was measured in.

    Raises :class:`specs.errors.UserError` where the libraries are missing.
    """
    try:
        import matplotlib
        import resvg_py
    except ImportError:
        raise UserError("drawing PNG needs libraries: pip install 'zoo[pictures]'") from None
    fonts = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    return bytes(
        resvg_py.svg_to_bytes(
            svg_string=plain(document),
            zoom=scale,
            skip_system_fonts=True,
            font_files=[str(fonts / name) for name in ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf")],
            font_family="DejaVu Sans",
            sans_serif_family="DejaVu Sans",
        )
    )
