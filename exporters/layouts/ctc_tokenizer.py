"""A tokenizer.json that collapses CTC labels, for clients that leave repetitions and blanks to the tokenizer."""

from __future__ import annotations

from typing import Any

from zoo.families.common.template import Data


def collapsing_tokenizer(fields: Data, blank: int) -> Data | None:
    """Return the fields of a tokenizer.json whose decoder drops repetitions and blanks; None if the decoder joins no
    pieces of words, or if the blank has no name.

    The blank is not a special token, so that it reaches the decoder, which keeps labels separated by a blank."""
    decoder: Any = fields.get("decoder")
    if not isinstance(decoder, dict) or decoder.get("type") != "Metaspace":
        return None
    name = _names(fields).get(blank)
    if name is None:
        return None
    space = decoder.get("replacement", "\u2581")
    collapsing = {"type": "CTC", "pad_token": name, "word_delimiter_token": space, "cleanup": True}
    added = [
        {**token, "special": token["special"] and token["id"] != blank}
        for token in fields.get("added_tokens", ())
    ]
    return {**fields, "added_tokens": added, "decoder": collapsing}


def _names(fields: Data) -> dict[int, str]:
    """The names of tokens by id, from a vocabulary by name or a list with scores, and from the added tokens."""
    vocabulary: Any = fields["model"]["vocab"]
    if isinstance(vocabulary, dict):
        names = {token: name for name, token in vocabulary.items()}
    else:
        names = {token: entry[0] for token, entry in enumerate(vocabulary)}
    return names | {added["id"]: added["content"] for added in fields.get("added_tokens", ())}
