"""The style of pictures: colours on light and dark backgrounds, and the files that figures become.

Colours are safe for colour-blind readers: lines use the palette of Okabe and Ito (2008), and larger values are darker on
light backgrounds and lighter on dark ones.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from specs.base.errors import UserError
from specs.base.printable import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INCH = 72.0
"""Points per inch: font sizes are in points, figures in inches."""

DPI = 144
"""Dots per inch of a PNG."""

Color = tuple[int, int, int]
"""Red, green and blue, 0 to 255 each."""


@dataclass(frozen=True)
class Style:
    """Colours as #rrggbb: background, text, secondary text, and lines.

    ``ramp``: colours of shares from 0, close to the background, to 1, in equal steps.
    """

    paper: str
    ink: str
    faint: str
    lines: tuple[str, ...]
    ramp: tuple[str, ...]

    def shade(self, share: float) -> Color:
        """The colour of a share between 0 and 1."""
        steps = list(pairwise(map(rgb, self.ramp)))
        offset = min(max(share, 0.0), 1.0) * len(steps)
        first = min(int(offset), len(steps) - 1)
        low, high = steps[first]
        red, green, blue = (round(a + (b - a) * (offset - first)) for a, b in zip(low, high, strict=True))
        return red, green, blue


LIGHT = Style(
    paper="#ffffff",
    ink="#1c1e21",
    faint="#6f757b",
    lines=("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#1c1e21"),
    ramp=("#f4f6f8", "#cfe1f2", "#93c4de", "#4a97c9", "#1764ab", "#08306b"),
)

DARK = Style(
    paper="#16181d",
    ink="#e8eaed",
    faint="#9aa0a6",
    lines=("#56b4e9", "#e69f00", "#1fc79a", "#e59cc7", "#f0e442", "#f58a4b", "#e8eaed"),
    ramp=("#20242b", "#1f4468", "#2b77a3", "#55b1c4", "#aee0cd", "#f7fcd9"),
)


def rgb(color: str) -> Color:
    """#rrggbb as three numbers."""
    red, green, blue = bytes.fromhex(color.removeprefix("#"))
    return red, green, blue


def require_library() -> None:
    """Raise :class:`specs.base.errors.UserError` if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UserError("Pictures need more libraries\n  Run pip install 'zoo[pictures]'.") from None


def new_figure(width: float, height: float, style: Style) -> Figure:
    """An empty figure, in inches.  Raises as :func:`require_library`."""
    require_library()
    from matplotlib.figure import Figure

    return Figure((width, height), dpi=DPI, facecolor=style.paper)


def png(figure: Figure) -> bytes:
    """A figure as PNG in 256 colours: the same bytes for the same figure."""
    from PIL import Image

    drawn, made = io.BytesIO(_printed(figure, "png", {"Software": None})), io.BytesIO()
    Image.open(drawn).convert("RGB").quantize(dither=Image.Dither.NONE).save(made, "PNG", optimize=True)
    return made.getvalue()


def svg(figure: Figure) -> str:
    """A figure as SVG whose text stays text: an element to stand in a page.  Control characters become escapes."""
    text = _printed(figure, "svg", {"Date": None, "Creator": None}).decode()
    return printable(text[text.index("<svg") :], keep="\n\t")


def _printed(figure: Figure, kind: str, metadata: dict[str, None]) -> bytes:
    import warnings

    from matplotlib import rc_context

    made = io.BytesIO()
    with warnings.catch_warnings(), rc_context({"svg.fonttype": "none", "svg.hashsalt": "zoo"}):
        warnings.filterwarnings("ignore", "Glyph")  # characters missing from the font are drawn as boxes
        figure.savefig(made, format=kind, metadata=metadata)
    return made.getvalue()
