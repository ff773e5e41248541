"""Text as token ids and back, with the tokenizer of a model."""

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

FILE = "tokenizer.json"

MASKS = ("[MASK]", "<mask>")
"""The names that tokenizers give the unknown token."""


class TextTokenizer:
    """A tokenizer, the path of its file, and how a checkpoint uses it.

    ``cut`` counts the texts so far of which not all tokens were read. Every method raises :class:`specs.base.errors.UserError`
    where the tokenizer fails.
    """

    def __init__(self, tokenizer: Any, path: Path) -> None:
        self.tokenizer, self.path = tokenizer, path
        self.usage, self.cut = SentenceUsage(), 0

    def use(self, usage: SentenceUsage) -> None:
        """Read texts as a checkpoint says."""
        self.usage = usage
        if usage.most is not None:
            with _faults_told(self.path):
                self.tokenizer.enable_truncation(usage.most)

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Each text as token ids, with the tokenizer's special tokens."""
        given = [f"{self.usage.before}{text}" for text in texts]
        given = [text.lower() for text in given] if self.usage.lower else given
        with _faults_told(self.path):
            found = self.tokenizer.encode_batch(given)
        self.cut += sum(bool(encoding.overflowing) for encoding in found)
        return [encoding.ids for encoding in found]

    def plain(self, text: str) -> list[int]:
        """A text as token ids, without special tokens."""
        with _faults_told(self.path):
            return list(self.tokenizer.encode(text, add_special_tokens=False).ids)

    @property
    def prefix(self) -> list[int]:
        """The special tokens that the tokenizer puts before a text."""
        with _faults_told(self.path):
            encoding = self.tokenizer.encode("a")
        text = next((at for at, special in enumerate(encoding.special_tokens_mask) if not special), 0)
        return list(encoding.ids[:text])

    def pair(self, first: str, second: str) -> tuple[list[int], list[int]]:
        """Two texts as one sequence with special tokens, and the type of each token."""
        with _faults_told(self.path):
            encoding = self.tokenizer.encode(first, second)
        return encoding.ids, encoding.type_ids

    @property
    def collapses(self) -> bool:
        """Whether the tokenizer drops repetitions of tokens, as labels of successive frames have them."""
        return type(self.tokenizer.decoder).__name__ == "CTC"

    def text(self, ids: Sequence[int]) -> str:
        """The text of token ids, without special tokens."""
        return self._decoded(ids, skip_special_tokens=True)

    def token(self, token: int) -> str:
        """The tokenizer's name of a token."""
        return str(self.tokenizer.id_to_token(token))

    def label(self, token: int) -> str:
        """The text of a token; where that is empty, or half a character, the tokenizer's name."""
        words = self._decoded([token], skip_special_tokens=False).strip()
        return self.token(token) if not words or "\N{REPLACEMENT CHARACTER}" in words else words

    def _decoded(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        with _faults_told(self.path):
            return str(self.tokenizer.decode(list(ids), skip_special_tokens=skip_special_tokens))

    def id_of(self, token: str) -> int:
        """The id of a token. Raises :class:`specs.base.errors.UserError` for an unknown one."""
        found = self.tokenizer.token_to_id(token)
        if found is None:
            raise UserError(
                f"{option_name('stop')} must be a token of the tokenizer, or a token id\n"
                f"  value: {token!r}\n  Choose one from vocab or added_tokens in {FILE}."
            )
        return int(found)

    @property
    def padding_id(self) -> int | None:
        """The token that fills texts up, if the settings beside the tokenizer name one."""
        name = self.stated("pad_token")
        found = None if name is None else self.tokenizer.token_to_id(name)
        return None if found is None else int(found)

    def stated(self, role: str) -> str | None:
        """The token that the settings beside the tokenizer name for a role, such as ``pad_token``."""
        stated = stated_in(self.path.parent / "tokenizer_config.json").get(role)
        name = stated.get("content") if isinstance(stated, dict) else stated
        return name if isinstance(name, str) else None

    @property
    def mask_id(self) -> int | None:
        """The unknown token, if the tokenizer has one."""
        found = map(self.tokenizer.token_to_id, MASKS)
        return next((token for token in found if token is not None), None)


def filled_text(ids: list[int], spec: Model, tokenizer: TextTokenizer) -> list[int]:
    """A text as the encoder of a dual encoder was trained on it: one that pools at the last token of all, in both directions,
    reads it filled up to its context (SigLIP)."""
    assert spec.text is not None
    length, padding = spec.context_length_of(spec.text), tokenizer.padding_id
    if getattr(spec.text.head, "pooling", None) != "last" or spec.is_causal("text") or length is None:
        return ids
    return ids if padding is None else [*ids, *[padding] * (length - len(ids))]


class Stream:
    """Decodes tokens as they come: a character appears once all of its tokens are there."""

    def __init__(self, text: TextTokenizer) -> None:
        from tokenizers.decoders import DecodeStream

        self._text, self._stream = text, DecodeStream(skip_special_tokens=True)

    def piece(self, token: int) -> str:
        """The text that a token completes, possibly empty."""
        with _faults_told(self._text.path):
            return self._stream.step(self._text.tokenizer, token) or ""


@contextmanager
def _faults_told(path: Path, what: str = ": the tokenizer fails") -> Iterator[None]:
    """Raise :class:`specs.base.errors.UserError` for any error of the library.

    It has no error class of its own, and its panics are not derived from :class:`Exception`.
    """
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise UserError(
            f"{path}{what}: {error}\n  Pass another {FILE} with {option_name('tokenizer')}, or token ids with {option_name('ids')}."
        ) from None


def find_text(directory: Path, given: Path | None, *, needed: bool) -> TextTokenizer | None:
    """The given tokenizer (a file or its directory), or else the one in a directory or GGUF file; None without any.

    Raises :class:`specs.base.errors.UserError` where it cannot be read; the library may be missing where a tokenizer is
    neither given nor ``needed``.
    """
    path = given or directory
    held = _in_gguf(path) if is_gguf(path) else None
    if held is None:
        path = path / FILE if given is None or path.is_dir() else path
        if given is None and not os.path.lexists(path):
            return None
    try:
        from tokenizers import Tokenizer
    except ImportError:
        if given is None and not needed:
            return None
        raise UserError(f"{path}: tokenizing needs a library: pip install 'zoo[text]'") from None
    held = (
        _text_of(path, None if given is not None and not given.is_dir() else path.parent)
        if held is None
        else held
    )
    with _faults_told(path, " is no tokenizer"):
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
    """The tokenizer in a GGUF file, as the text of a tokenizer.json; None where its kind is not supported."""
    from zoo.checkpoints.gguf_tokenizer import gguf_tokenizer

    return gguf_tokenizer(path).get(FILE)
