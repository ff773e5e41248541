"""Text as token ids and back, with the tokenizer that came with a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from specs.errors import UserError, option_name

FILE = "tokenizer.json"

MASKS = ("[MASK]", "<mask>")
"""What tokenizers call the token that stands for a missing one."""


class Text:
    """A tokenizer, and the file that it came from.

    Every method raises :class:`specs.errors.UserError` where the tokenizer fails, as one does that names a token it lacks.
    """

    def __init__(self, tokenizer: Any, path: Path) -> None:
        self.tokenizer, self.path = tokenizer, path

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Each text as token ids, with the special tokens around it that the tokenizer adds."""
        with _faults_told(self.path):
            return [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts))]

    def plain(self, text: str) -> list[int]:
        """A text as token ids, without special tokens around it."""
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
        """Two texts as one sequence, with the special tokens around and between them, and the type of each token."""
        with _faults_told(self.path):
            encoding = self.tokenizer.encode(first, second)
        return encoding.ids, encoding.type_ids

    def text(self, ids: Sequence[int]) -> str:
        """The text of token ids, without special tokens."""
        return self._decoded(ids, skip_special_tokens=True)

    def token(self, token: int) -> str:
        """One token as the tokenizer calls it."""
        return str(self.tokenizer.id_to_token(token))

    def label(self, token: int) -> str:
        """One token as a reader sees it; where that is nothing, or half a character, as the tokenizer calls it."""
        words = self._decoded([token], skip_special_tokens=False).strip()
        return self.token(token) if not words or "\N{REPLACEMENT CHARACTER}" in words else words

    def _decoded(self, ids: Sequence[int], *, skip_special_tokens: bool) -> str:
        with _faults_told(self.path):
            return str(self.tokenizer.decode(list(ids), skip_special_tokens=skip_special_tokens))

    def id_of(self, token: str) -> int:
        """The id of a token.  Raises :class:`specs.errors.UserError` where there is none."""
        found = self.tokenizer.token_to_id(token)
        if found is None:
            raise UserError(
                f"{option_name('stop')} must be one token, as the tokenizer calls it, or a token's id\n"
                f"  value: {token!r}\n  {FILE} lists them, as vocab and added_tokens"
            )
        return int(found)

    @property
    def mask_id(self) -> int | None:
        """The token that stands for a missing one, where there is one."""
        found = map(self.tokenizer.token_to_id, MASKS)
        return next((token for token in found if token is not None), None)


class Stream:
    """The text of tokens as they come: a character appears when all of its tokens are there."""

    def __init__(self, text: Text) -> None:
        from tokenizers.decoders import DecodeStream

        self._text, self._stream = text, DecodeStream(skip_special_tokens=True)

    def piece(self, token: int) -> str:
        """The text that a token completes, which may be empty."""
        with _faults_told(self._text.path):
            return self._stream.step(self._text.tokenizer, token) or ""


@contextmanager
def _faults_told(path: Path, what: str = ": the tokenizer fails") -> Iterator[None]:
    """Raise :class:`specs.errors.UserError` for whatever the library raises.

    It has no class of its own for its errors, and where it panics raises what is no :class:`Exception`.
    """
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise UserError(
            f"{path}{what}: {error}\n  Pass another {FILE} with {option_name('tokenizer')}, or token ids with {option_name('ids')}."
        ) from None


def find_text(directory: Path, given: Path | None, *, needed: bool) -> Text | None:
    """The tokenizer that is given, a file or the directory around it, else that of a directory or of the GGUF file in the
    place of one; None without any.

    Raises :class:`specs.errors.UserError` where it cannot be read; where it is neither given nor ``needed``, the
    library may be missing.
    """
    path = given or directory
    held = _in_gguf(path) if path.suffix == ".gguf" and path.is_file() else None
    if held is None:
        path = path / FILE if given is None or path.is_dir() else path
        if given is None and not path.exists():
            return None
    try:
        from tokenizers import Tokenizer
    except ImportError:
        if given is None and not needed:
            return None
        raise UserError(f"{path}: tokenizing needs a library: pip install 'zoo[text]'") from None
    with _faults_told(path, " is no tokenizer"):
        tokenizer = Tokenizer.from_file(str(path)) if held is None else Tokenizer.from_str(held)
        tokenizer.no_truncation()
        tokenizer.no_padding()
    return Text(tokenizer, path)


def _in_gguf(path: Path) -> str | None:
    """The tokenizer that a GGUF file holds, as the text of a tokenizer.json; None where it holds none that is known."""
    from zoo.checkpoints.gguf_tokenizer import gguf_tokenizer

    return gguf_tokenizer(path).get(FILE)
