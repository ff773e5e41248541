"""Escaping of untrusted text for display."""

import re

_UNSAFE = (
    "[\x00-\x1f\x7f-\x9f"  # control characters: terminal escapes, bells, newlines
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional controls
    "\u2028\u2029"  # line and paragraph separators
    "\ud800-\udfff\ufffe\uffff]"  # not representable in an encoding or in XML
)


def printable(text: str, keep: str = "") -> str:
    r"""The text with control characters escaped, as in `\x1b`, except those in ``keep``.

    Terminals interpret such characters, and XML and HTML cannot represent them.  Bytes of a file name that are not UTF-8
    are shown as bytes.
    """
    if text.isprintable():
        return text
    return re.sub(_UNSAFE, lambda match: match[0] if match[0] in keep else _escape(ord(match[0])), text)


def _escape(code: int) -> str:
    if 0xDC80 <= code <= 0xDCFF:  # Python's surrogate for an undecodable byte
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
