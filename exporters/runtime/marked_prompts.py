"""Texts in which each image stands between marks, as Gemma 3's processor writes them."""

from __future__ import annotations

from collections.abc import Sequence

from exporters.runtime.text import TextTokenizer
from specs.connector import ConnectorKind
from specs.model import Model


def with_marks(texts: Sequence[str], images: int, spec: Model, tokenizer: TextTokenizer) -> list[str]:
    """Texts with marks, newlines and a placeholder for every vector in place of each mark that begins an image.

    A single text without marks and placeholders begins with its ``images``. Texts are unchanged where the settings beside the
    tokenizer name no marks.
    """
    connector = spec.connector
    assert isinstance(connector, ConnectorKind)
    begin, end = tokenizer.stated("boi_token"), tokenizer.stated("eoi_token")
    if begin is None or end is None:
        return list(texts)
    placeholder = tokenizer.token(connector.token)
    if len(texts) == 1 and not any(each in texts[0] for each in (begin, placeholder)):
        texts = [begin * images + texts[0]]
    whole = f"\n\n{begin}{placeholder * spec.vectors_per_image}{end}\n\n"
    return [text.replace(begin, whole) for text in texts]
