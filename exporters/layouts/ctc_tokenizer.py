"""A tokenizer.json that decodes the labels of all frames, for clients that leave repetitions and blanks to it."""

from __future__ import annotations

from typing import Any

from zoo.families.common.template import Data


def collapsing_tokenizer(stated: Data, blank: int) -> Data | None:
    """Return the fields of a tokenizer.json whose decoder drops repetitions and blanks; None where the decoder joins no
    pieces of words, or the blank has no name.

    The blank is no special token, so that it reaches the decoder, which keeps what a blank separates."""
    decoder: Any = stated.get("decoder")
    if not isinstance(decoder, dict) or decoder.get("type") != "Metaspace":
        return None
    name = _names(stated).get(blank)
    if name is None:
        return None
    space = decoder.get("replacement", "\u2581")
    collapsing = {"type": "CTC", "pad_token": name, "word_delimiter_token": space, "cleanup": True}
    added = [
        {**each, "special": each["special"] and each["id"] != blank}
        for each in stated.get("added_tokens", ())
    ]
    return {**stated, "added_tokens": added, "decoder": collapsing}


def _names(stated: Data) -> dict[int, str]:
    """The names of tokens by id: a vocabulary by name, or a list with scores, and the tokens added to it."""
    vocabulary: Any = stated["model"]["vocab"]
    if isinstance(vocabulary, dict):
        names = {place: name for name, place in vocabulary.items()}
    else:
        names = {place: entry[0] for place, entry in enumerate(vocabulary)}
    return names | {each["id"]: each["content"] for each in stated.get("added_tokens", ())}
