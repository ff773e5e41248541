"""Text widths in DejaVu Sans, the widest of the requested fonts, so that boxes hold their text in any of them."""

from __future__ import annotations

from collections.abc import Iterable

FONTS = "Inter, 'Helvetica Neue', Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"

_CHARACTERS = (
    "".join(map(chr, range(32, 127)))
    + "\u00b7\u00d7\u00b2\u221a\u03b1\u03b8\u00b1\u2192\u2026\u2013\u2225\u21e5"
)
_UNITS = 2048
# fmt: off
_REGULAR = (
    651, 821, 942, 1716, 1303, 1946, 1597, 563, 799, 799, 1024, 1716, 651, 739, 651, 690, 1303, 1303, 1303,
    1303, 1303, 1303, 1303, 1303, 1303, 1303, 690, 690, 1716, 1716, 1716, 1087, 2048, 1401, 1405, 1430,
    1577, 1294, 1178, 1587, 1540, 604, 604, 1343, 1141, 1767, 1532, 1612, 1235, 1612, 1423, 1300, 1251,
    1499, 1401, 2025, 1403, 1251, 1403, 799, 690, 799, 1716, 1024, 1024, 1255, 1300, 1126, 1300, 1260, 721,
    1300, 1298, 569, 569, 1186, 569, 1995, 1298, 1253, 1300, 1300, 842, 1067, 803, 1298, 1212, 1675, 1212,
    1212, 1075, 1303, 690, 1303, 1716, 651, 1716, 821, 1305, 1350, 1253, 1716, 1716, 2048, 1024, 1024,
    1716,
)
_BOLD = (
    713, 934, 1067, 1716, 1425, 2052, 1786, 627, 936, 936, 1071, 1716, 778, 850, 778, 748, 1425, 1425, 1425,
    1425, 1425, 1425, 1425, 1425, 1425, 1425, 819, 819, 1716, 1716, 1716, 1188, 2048, 1585, 1561, 1503,
    1700, 1399, 1399, 1681, 1714, 762, 762, 1587, 1305, 2038, 1714, 1741, 1501, 1741, 1577, 1475, 1397,
    1663, 1585, 2259, 1579, 1483, 1485, 936, 748, 936, 1716, 1024, 1024, 1382, 1466, 1214, 1466, 1389, 891,
    1466, 1458, 702, 702, 1362, 702, 2134, 1458, 1407, 1466, 1466, 1010, 1219, 979, 1458, 1335, 1892, 1321,
    1335, 1192, 1458, 748, 1458, 1716, 778, 1716, 897, 1366, 1407, 1407, 1716, 1716, 2048, 1024, 1024,
    1716,
)
# fmt: on
_WIDTHS = {
    False: dict(zip(_CHARACTERS, _REGULAR, strict=True)),
    True: dict(zip(_CHARACTERS, _BOLD, strict=True)),
}


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """The width of a line of text in DejaVu Sans; characters outside the table are as wide as high."""
    return sum(_WIDTHS[bold].get(character, _UNITS) for character in text) * size / _UNITS


def fitted(text: str, width: float, size: float, *, bold: bool = False) -> str:
    """The text, truncated to ``width``."""
    if text_width(text, size, bold=bold) <= width:
        return text
    while text and text_width(f"{text}…", size, bold=bold) > width:
        text = text[:-1]
    return f"{text.rstrip()}…"


def lines_of(words: Iterable[str], width: float, size: float) -> list[str]:
    """Join words into lines of at most ``width``."""
    lines: list[str] = []
    for word in words:
        longer = f"{lines[-1]} · {word}" if lines else word
        if lines and text_width(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(fitted(word, width, size))
    return lines
