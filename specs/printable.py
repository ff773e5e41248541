"""Text from files and options, made safe to show."""

import re

_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # control characters: terminal escapes, bells, newlines
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # what reorders the text around it
    "\u2028\u2029"  # line and paragraph separators
    "\ud800-\udfff\ufffe\uffff]"  # what no encoding, or no XML, can hold
)


def printable(text: str, keep: str = "") -> str:
    r"""The text with control characters as escapes, `\x1b`, but for the characters in ``keep``.

    Terminals obey such characters, and XML and HTML cannot hold them.  A byte of a file name that is not UTF-8 is
    shown as that byte.
    """
    if text.isprintable():
        return text
    return _UNSAFE.sub(lambda found: found[0] if found[0] in keep else _escape(ord(found[0])), text)


def _escape(code: int) -> str:
    if 0xDC80 <= code <= 0xDCFF:  # how Python holds a byte that it could not decode
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
