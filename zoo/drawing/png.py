"""A drawing as PNG."""

from __future__ import annotations

import math
from pathlib import Path

from specs.base.errors import UserError, option_name
from zoo.drawing.scene import Scene
from zoo.drawing.svg import plain, svg

MOST_PIXELS = 200_000_000


def png(scene: Scene, scale: float = 2.0) -> bytes:
    """The picture of a scene, with ``scale`` pixels per unit, in the font that its text was measured with.

    Raises :class:`specs.base.errors.UserError` if the libraries are missing or the picture would be too large.
    """
    pixels = scene.width * scene.height * scale**2
    if pixels > MOST_PIXELS:
        most = (MOST_PIXELS / scene.width / scene.height) ** 0.5
        raise UserError(
            f"{scene.title} at scale {scale:g} has {pixels:,.0f} pixels, more than {MOST_PIXELS:,}\n"
            f"  Use {option_name('scale')} {math.floor(most * 10) / 10:g} or less, or SVG."
        )
    try:
        import matplotlib
        import resvg_py
    except ImportError:
        raise UserError("Drawing PNG needs more libraries\n  Run pip install 'zoo[pictures]'.") from None
    fonts = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    return bytes(
        resvg_py.svg_to_bytes(
            svg_string=plain(svg(scene)),
            zoom=scale,
            skip_system_fonts=True,
            font_files=[str(fonts / name) for name in ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf")],
            font_family="DejaVu Sans",
            sans_serif_family="DejaVu Sans",
        )
    )
