"""Specs in the fragment of an address: deflated, in the alphabet of base64 for addresses."""

from __future__ import annotations

import base64
import binascii
import zlib
from urllib.parse import parse_qs, urlsplit

from specs.base.errors import UserError
from specs.language.document import MAX_BYTES


def is_link(reference: str) -> bool:
    """Whether a reference is the address of a studio with a spec."""
    return reference.startswith(("http://", "https://")) and "spec=" in urlsplit(reference).fragment


def text_of_link(address: str) -> str:
    """The text of the spec in an address; the address itself is not asked.  Raises :class:`UserError`."""
    packed = parse_qs(urlsplit(address).fragment).get("spec", [""])[0]
    try:
        data = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
        unpacking = zlib.decompressobj(wbits=-15)
        text = unpacking.decompress(data, MAX_BYTES + 1)
        if len(text) > MAX_BYTES or not unpacking.eof:
            raise ValueError
        return text.decode()
    except (binascii.Error, zlib.error, ValueError):
        raise UserError(
            "The address holds no spec that can be read.\n  Copy it again with Copy link in the studio."
        ) from None


def fragment_of(text: str) -> str:
    """The fragment that holds a text."""
    packing = zlib.compressobj(9, wbits=-15)
    packed = packing.compress(text.encode()) + packing.flush()
    return f"spec={base64.urlsafe_b64encode(packed).decode().rstrip('=')}"
