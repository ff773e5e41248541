"""Specs to start from: short, with a comment beside each key that is usually changed first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from specs.base import registry
from specs.language.document import Document
from specs.language.variant import unclaimed
from specs.language.writing import dump

STARTS = {"decoder": "tiny-gpt", "encoder": "bert-tiny", "encoder-decoder": "t5-small"}
"""The preset that each architecture starts from."""

_COMMENTS = {
    "vocab_size": "tokens of your tokenizer",
    "d_model": "width; a multiple of the number of heads",
    "context_length": "maximum number of tokens",
    "layers": "number of layers",
    "heads": "query heads",
    "kv_heads": "key and value heads: fewer of them, a smaller cache",
    "hidden": "width inside the feed-forward",
    "dropout": "in training only",
}
"""Comments by the last key of a path."""

_SLOTS = ("position", "norm", "attention", "feed_forward", "block", "head")
"""Keys whose other kinds are listed in a comment."""

_COLUMNS = 100
_KEY = re.compile(r"( *)([a-z_]+):(?: |$)")


def new_spec(name: str, like: Document) -> str:
    """The YAML of a spec named ``name`` that starts as a copy of ``like``, without what that claims of itself: its published
    count, source and year."""
    data = {**unclaimed(like).data, "name": name}
    return "".join(f"{line}\n" for line in _commented(dump(data).splitlines()))


def _commented(lines: Sequence[str]) -> Iterator[str]:
    said: set[str] = set()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        match = _KEY.match(line)
        if match is None or match[2] in said or not (comment := _comment(match[2], f"{line} {following}")):
            yield line
            continue
        said.add(match[2])
        if len(line) + 4 + len(comment) <= _COLUMNS:
            yield f"{line}  # {comment}"
        else:
            yield f"{match[1]}# {comment}"
            yield line


def _comment(key: str, text: str) -> str:
    if key not in _SLOTS:
        return _COMMENTS.get(key, "")
    kind = re.search(r"kind: (\w+)", text)
    others = [other for other in registry.kinds(key) if kind is None or other != kind[1]]
    return f"or kind: {', '.join(others[:3])}{', ...' if len(others) > 3 else ''}"


def new_zoo(models: Mapping[str, Any]) -> str:
    """The YAML of a zoo file with some models, commented."""
    head = (
        "# The models that you keep up to date. `zoo make` builds what has changed, `zoo make --plan` lists it.\n"
        "defaults:\n"
        "  # One artefact for each combination: --target and --precision of `zoo export`.\n"
        "  matrix: {target: [portable, cpu], precision: [fp32, int8]}\n"
        "  exclude: [{target: portable, precision: int8}]\n"
        "models:\n"
    )
    return head + "".join(f"  {line}\n" for line in dump(models).splitlines())
