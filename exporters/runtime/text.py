"""Conversion of text to token ids and back, with a model's tokenizer."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from exporters.runtime.sentences import SentenceUsage
from specs.base.errors import UserError, option_name
from specs.model.model import Model
from zoo.checkpoints.carried import stated_in
from zoo.files.reading import read_regular, unreadable
from zoo.weights.gguf_file import is_gguf
from zoo.weights.modules import body_directory

FILE = "tokenizer.json"

MASKS = ("[MASK]", "<mask>")
"""The names of the mask token in tokenizers."""

UNKNOWN = ("[UNK]", "<unk>")
"""The names of the token of unknown text in tokenizers."""


class TextTokenizer:
    """A tokenizer, the path of its file, and the checkpoint's settings for texts.

    ``cut`` counts the texts truncated so far. Every method raises :class:`specs.base.errors.UserError` if the tokenizer fails.
    """

    def __init__(self, tokenizer: Any, path: Path) -> None:
        self.tokenizer, self.path = tokenizer, path
        self.usage, self.cut = SentenceUsage(), 0

    def use(self, usage: SentenceUsage) -> None:
        """Adopt a checkpoint's settings for texts."""
        self.usage = usage
        if usage.most is not None:
            with _reported_failures(self.path):
                self.tokenizer.enable_truncation(usage.most)

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Each text as token ids, with the tokenizer's special tokens."""
        prefixed = [f"{self.usage.before}{text}" for text in texts]
        prefixed = [text.lower() for text in prefixed] if self.usage.lower else prefixed
        with _reported_failures(self.path):
            encodings = self.tokenizer.encode_batch(prefixed)
        self.cut += sum(bool(encoding.overflowing) for encoding in encodings)
        return [encoding.ids for encoding in encodings]

    def of_words(self, words: Sequence[str]) -> tuple[list[int], list[int | None]]:
        """Words as token ids, with special tokens, and the index of the word of each; None for special tokens."""
        with _reported_failures(self.path):
            encoding = self.tokenizer.encode(list(words), is_pretokenized=True)
        return encoding.ids, encoding.word_ids

    def plain(self, text: str) -> list[int]:
        """A text as token ids, without special tokens."""
        with _reported_failures(self.path):
            return list(self.tokenizer.encode(text, add_special_tokens=False).ids)

    @property
    def prefix(self) -> list[int]:
        """The special tokens that the tokenizer puts before a text."""
        with _reported_failures(self.path):
            encoding = self.tokenizer.encode("a")
        text = next((index for index, special in enumerate(encoding.special_tokens_mask) if not special), 0)
        return list(encoding.ids[:text])

    @property
    def vocabulary(self) -> dict[str, int]:
        """The id of every token, with those added to the vocabulary."""
        with _reported_failures(self.path):
            return dict(self.tokenizer.get_vocab(with_added_tokens=True))

    def pair(self, first: str, second: str) -> tuple[list[int], list[int]]:
        """Two texts as one sequence with special tokens, and the type of each token."""
        with _reported_failures(self.path):
            encoding = self.tokenizer.encode(first, second)
        return encoding.ids, encoding.type_ids

    @property
    def collapses(self) -> bool:
        """Whether decoding drops repeated tokens, as CTC labels need."""
        return type(self.tokenizer.decoder).__name__ == "CTC"

    def text(self, ids: Sequence[int]) -> str:
        """The text of token ids, without special tokens."""
        return self._decoded(ids, skip_special_tokens=True)

    def token(self, token: int) -> str:
        """The tokenizer's name of a token."""
        return str(self.tokenizer.id_to_token(token))

    def label(self, token: int) -> str:
        """The text of a token, or the tokenizer's name for it if the text is empty or part of a character."""
        words = self._decoded([token], skip_special_tokens=False).strip()
        return self.token(token) if not words or "\N{REPLACEMENT CHARACTER}" in words else words

    def _decoded(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        with _reported_failures(self.path):
            return str(self.tokenizer.decode(list(ids), skip_special_tokens=skip_special_tokens))

    def id_of(self, token: str) -> int:
        """The id of a token. Raises :class:`specs.base.errors.UserError` for an unknown token."""
        number = self.tokenizer.token_to_id(token)
        if number is None:
            raise UserError(
                f"{option_name('stop')} must be a token of the tokenizer, or a token id\n"
                f"  value: {token!r}\n  Choose one from vocab or added_tokens in {FILE}."
            )
        return int(number)

    @property
    def padding_id(self) -> int | None:
        """The padding token, if the tokenizer's settings name one."""
        name = self.stated("pad_token")
        number = None if name is None else self.tokenizer.token_to_id(name)
        return None if number is None else int(number)

    def stated(self, role: str) -> str | None:
        """The token for a role, such as ``pad_token``, in the tokenizer's settings."""
        token = stated_in(self.path.parent / "tokenizer_config.json").get(role)
        name = token.get("content") if isinstance(token, dict) else token
        return name if isinstance(name, str) else None

    @property
    def special_ids(self) -> set[int]:
        """The ids of the start, end, padding and unknown tokens that the tokenizer's settings name, or else of all special tokens."""
        names = (self.stated(f"{role}_token") for role in ("cls", "eos", "pad", "unk"))
        ids = {self.tokenizer.token_to_id(name) for name in names if name is not None} - {None}
        with _reported_failures(self.path):
            added = self.tokenizer.get_added_tokens_decoder()
        return ids or {token for token, entry in added.items() if entry.special}

    @property
    def unknown_id(self) -> int | None:
        """The token of what the tokenizer does not know, if it has one."""
        return self._first_id(UNKNOWN)

    @property
    def mask_id(self) -> int | None:
        """The mask token, if the tokenizer has one."""
        return self._first_id(MASKS)

    def _first_id(self, names: Sequence[str]) -> int | None:
        """The id of the first of some tokens that the tokenizer has."""
        ids = map(self.tokenizer.token_to_id, names)
        return next((token for token in ids if token is not None), None)


def filled_text(ids: list[int], spec: Model, tokenizer: TextTokenizer) -> list[int]:
    """Pad a text to the context length for a bidirectional text encoder that pools at the last position (SigLIP)."""
    text = spec.stack("text")
    length, padding = spec.context_length_of(text), tokenizer.padding_id
    if text.head is None or not text.head.pools_last or spec.is_causal("text") or length is None:
        return ids
    return ids if padding is None else [*ids, *[padding] * (length - len(ids))]


class Stream:
    """Decodes tokens one by one: a character appears with the last of its tokens."""

    def __init__(self, text: TextTokenizer) -> None:
        from tokenizers.decoders import DecodeStream

        self._text, self._stream = text, DecodeStream(skip_special_tokens=True)

    def piece(self, token: int) -> str:
        """The text completed by a token, possibly empty."""
        with _reported_failures(self._text.path):
            return self._stream.step(self._text.tokenizer, token) or ""


@contextmanager
def _reported_failures(path: Path, what: str = ": the tokenizer fails") -> Iterator[None]:
    """Raise :class:`specs.base.errors.UserError` for any error of the tokenizers library.

    The library has no error class, and its panics do not derive from :class:`Exception`.
    """
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise UserError(
            f"{path}{what}: {error}\n  Pass another {FILE} with {option_name('tokenizer')}, or token ids with {option_name('ids')}."
        ) from None


def find_text(directory: Path, chosen: Path | None, *, needed: bool) -> TextTokenizer | None:
    """Open the ``chosen`` tokenizer (a file or its directory), or else the tokenizer in a directory or GGUF file; None without
    any.

    Raises :class:`specs.base.errors.UserError` if it cannot be read; the library may be missing if a tokenizer is neither
    chosen nor ``needed``.
    """
    path = chosen or directory
    held = _in_gguf(path) if is_gguf(path) else None
    if held is None:
        path = body_directory(path) / FILE if chosen is None or path.is_dir() else path
        if chosen is None and not os.path.lexists(path):
            return None
    try:
        from tokenizers import Tokenizer
    except ImportError:
        if chosen is None and not needed:
            return None
        raise UserError(f"{path}: tokenizing needs a library: pip install 'zoo[text]'") from None
    held = (
        _text_of(path, None if chosen is not None and not chosen.is_dir() else path.parent)
        if held is None
        else held
    )
    with _reported_failures(path, " is no tokenizer"):
        tokenizer = Tokenizer.from_str(held)
        tokenizer.no_truncation()
        tokenizer.no_padding()
    return TextTokenizer(tokenizer, path)


def _text_of(path: Path, within: Path | None) -> str:
    try:
        return read_regular(path, within).decode()
    except OSError as error:
        raise UserError(unreadable(path, error)) from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is no tokenizer: it must be UTF-8 text.\n  Pass another {FILE}.") from None


def _in_gguf(path: Path) -> str | None:
    """The tokenizer in a GGUF file, as the text of a tokenizer.json; None if its kind is not supported."""
    from zoo.checkpoints.gguf_tokenizer import gguf_tokenizer

    return gguf_tokenizer(path).get(FILE)
