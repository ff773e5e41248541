"""The tokens that end a turn of a chat, which chat templates name and generation settings may lack."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from specs.base.errors import UserError
from zoo.checkpoints.carried import stated_in
from zoo.files.reading import read_regular, unreadable

END, TEMPLATE = "eos_token_id", "chat_template"
ENDS_OF_TURNS = ("<|eot_id|>", "<|im_end|>", "<end_of_turn>")
"""Those of Llama 3, ChatML and Gemma.  Tokens that end a part of an answer as well, such as GPT-OSS' <|end|>, are left out."""


def with_ends_of_turns(settings: Mapping[str, Any], origin: Path) -> dict[str, Any]:
    """Return the generation settings of a checkpoint's directory, in which the tokens that end a turn of its chat template end
    a sequence too.

    Raises :class:`specs.base.errors.UserError` for files that are not regular ones of the directory.
    """
    tokenizer = stated_in(origin / "tokenizer_config.json")
    template = _template_file(origin) or json.dumps(tokenizer.get(TEMPLATE, ""), ensure_ascii=False)
    named = [name for name in ENDS_OF_TURNS if name in template]
    number = settings.get(END)
    ends = [] if number is None else number if isinstance(number, list) else [number]
    missing = [added for name, added in _added(origin, tokenizer, named) if added not in ends]
    return {**settings, END: [*ends, *missing]} if missing else dict(settings)


def _template_file(origin: Path) -> str:
    file = origin / "chat_template.jinja"
    try:
        return read_regular(file, origin).decode("utf-8", "replace") if file.is_file() else ""
    except OSError as error:
        raise UserError(unreadable(file, error)) from None


def _added(origin: Path, tokenizer: Mapping[str, Any], names: list[str]) -> Iterator[tuple[str, int]]:
    """Yield the tokens of some names that were added to a vocabulary, and their ids."""
    if not names:
        return
    added = tokenizer.get("added_tokens_decoder")
    listed = stated_in(origin / "tokenizer.json").get("added_tokens") if added is None else added
    pairs = listed.items() if isinstance(listed, dict) else ((None, token) for token in listed or ())
    for number, token in pairs:
        if not isinstance(token, dict) or token.get("content") not in names:
            continue
        identity = str(token.get("id", number))
        if identity.isdecimal():
            yield token["content"], int(identity)
