"""Texts as inputs: windows of tokens of a decoder, sentences of others, by kind of text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from exporters.quality.examples import Example, of_tokens
from exporters.quality.input_checks import check_vocabulary
from exporters.quality.parts import (
    DECODED,
    Most,
    Representative,
    batched,
    described,
    most_of,
    parted,
    rows_of,
    size_of,
)
from exporters.quality.texts import LANGUAGES, Texts
from exporters.runtime.text import TextTokenizer
from specs.base.errors import UserError
from specs.model.model import Model

WINDOW = 256
"""The length of a decoder's window in tokens, unless its context is shorter."""

LONGEST = 240
"""The largest number of characters of a sentence of the corpus."""

LEAST_BYTES, MOST_UNKNOWN = 2.5, 0.02
"""A language that a tokenizer was not made for has fewer bytes per token, or a larger share of unknown tokens."""

OWN_TOKENIZER = "Give the tokenizer that came with the model."

Parts = tuple[list[Example], list[Example]]
"""The examples that calibrate, and those that are judged."""


def of_texts(spec: Model, texts: Texts, tokenizer: TextTokenizer, share: int) -> Representative:
    """The windows or sentences of texts.

    Every kind of text has an equal part of them; what is left over goes to the first kind. Languages that the tokenizer was not
    made for are left out. ``share``: the first of this many equal parts of each text calibrates; 0 for none.
    """
    parts = (_windows if spec.architecture == "decoder" else _sentences)(spec, texts, tokenizer, share)
    calibration = [example for first, _ in parts.values() for example in first]
    judged = [(kind, example) for kind, (_, rest) in parts.items() for example in rest]
    examples = [example for _, example in judged]
    size = size_of(examples) if spec.architecture == "decoder" else f"{rows_of(examples)} sentences"
    kinds = f" of {len(parts)} kinds" if len(parts) > 1 else ""
    return Representative(
        f"{described(texts.name, size)}{kinds}",
        calibration,
        examples,
        texts.sha256,
        [kind for kind, _ in judged],
    )


def windows_of(
    spec: Model,
    name: str,
    ids: Tensor,
    prefix: Sequence[int],
    share: int,
    most: Most = DECODED,
) -> Parts:
    """Cut a token stream into windows, evenly spaced over the calibration part and over the judged part.

    Raises :class:`specs.base.errors.UserError` where it is too short for one of each.
    """
    length = min(WINDOW, spec.context_length_of(spec.last_stack) or WINDOW)
    own = length - len(prefix)
    needed = own * (2 if share else 1)
    if len(ids) < needed:
        raise UserError(
            f"{name}: must have at least {needed} tokens for {spec.name}: "
            + (f"one window of {own} calibrates, and another is judged" if share else f"a window has {own}")
            + f"\n  value: {len(ids)} tokens\n  Give a longer text."
        )
    border = max(own, len(ids) // share) if share else 0
    front = torch.tensor(prefix, dtype=torch.int64)
    first, rest = (
        [of_tokens(torch.cat([front, window])[None]) for window in _spread(part, own, count)]
        for part, count in ((ids[:border], most.calibrating), (ids[border:], most.judged))
    )
    return first, rest


def _windows(spec: Model, texts: Texts, tokenizer: TextTokenizer, share: int) -> dict[str, Parts]:
    ids = {kind: tokenizer.plain(text) for kind, text in texts.kinds.items()}
    streams = {
        kind: torch.tensor(ids[kind], dtype=torch.int64)
        for kind, text in texts.kinds.items()
        if _is_readable(kind, text, ids[kind], tokenizer)
    }
    parts, prefix = {}, tokenizer.prefix
    for kind, stream in streams.items():
        check_vocabulary(spec, f"{tokenizer.path} on {texts.name}", stream, OWN_TOKENIZER)
        most = _most(kind, streams, DECODED)
        parts[kind] = windows_of(spec, texts.name, stream, prefix, share, most)
    return parts


def _is_readable(kind: str, text: str, tokens: Sequence[int], tokenizer: TextTokenizer) -> bool:
    """Whether a tokenizer was made for a kind of text; only languages are doubted."""
    if kind not in LANGUAGES:
        return True
    unknown = tokens.count(tokenizer.unknown_id)
    return len(text.encode()) >= LEAST_BYTES * len(tokens) and unknown <= MOST_UNKNOWN * len(tokens)


def _most(kind: str, kinds: Mapping[str, object], most: Most) -> Most:
    """The equal part of each kind, and the rest for the first."""
    is_first = kind == next(iter(kinds))

    def part(whole: int) -> int:
        equal = max(1, whole // len(kinds))
        return max(equal, whole - equal * (len(kinds) - 1)) if is_first else equal

    return Most(*map(part, most))


def _spread(part: Tensor, length: int, most: int) -> list[Tensor]:
    """Cut at most ``most`` windows without overlap, from the first token to the last."""
    count = min(most, len(part) // length)
    if not count:
        return []
    step = (len(part) - length) / max(1, count - 1)
    starts = [round(index * step) for index in range(count)] if count > 1 else [0]
    return [part[start : start + length] for start in starts]


_END = re.compile(
    r"(?<=[.!?])[\"')\]]*\s+|(?<=[\u3002\uff01\uff1f\u0964\u061f])[\u300d\u300f\u201d\uff09]*\s*|\n\n+"
)


def _sentences(spec: Model, texts: Texts, tokenizer: TextTokenizer, share: int) -> dict[str, Parts]:
    """Sentences with the special tokens that the tokenizer adds, in batches where a model has no decoder."""
    pieces = {kind: _pieces(kind, text) for kind, text in texts.kinds.items()}
    ids = {kind: tokenizer.ids(of_kind) for kind, of_kind in pieces.items()}
    ids = {
        kind: rows
        for kind, rows in ids.items()
        if _is_readable(kind, "".join(pieces[kind]), [token for row in rows for token in row], tokenizer)
    }
    parts, limit = {}, spec.context_length_of(spec.first_stack)
    for kind, rows in ids.items():
        most = _most(kind, ids, most_of(spec))
        chosen = _chosen([row for row in rows if row], max(most.judged * 2, most.calibrating * share))
        cut = [row if limit is None or len(row) <= limit else [*row[: limit - 1], row[-1]] for row in chosen]
        if cut:
            every = torch.tensor([token for row in cut for token in row])
            check_vocabulary(spec, f"{tokenizer.path} on {texts.name}", every, OWN_TOKENIZER)
        split = parted(
            texts.name,
            texts.sha256,
            [of_tokens(torch.tensor([row])) for row in cut],
            share,
            most,
            "sentences",
        )
        parts[kind] = batched(spec, split.calibration), batched(spec, split.judged)
    return parts


def _pieces(kind: str, text: str) -> list[str]:
    """The sentences of a text, each on one line. Those of the corpus end after :data:`LONGEST` characters."""
    pieces = [" ".join(piece.split()) for piece in _END.split(text)]
    return [piece[:LONGEST] if kind else piece for piece in pieces if len(piece) > 1]


def _chosen(rows: list[list[int]], most: int) -> list[list[int]]:
    """At most ``most`` of some rows, evenly spaced."""
    return [rows[index * len(rows) // most] for index in range(most)] if len(rows) > most else rows
