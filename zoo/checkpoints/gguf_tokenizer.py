"""The tokenizer in a GGUF file as the ``tokenizer.json`` that the tokenizers library reads.

Only exactly known kinds are supported: byte-level BPE (``gpt2``) with a pre-tokenizer in ``_SPLITS``, and SentencePiece
BPE (``llama``).  The rules are those of llama.cpp (src/llama-vocab.cpp).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from zoo.weights.gguf_header import read_header

Data = dict[str, Any]

_LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN_2 = _LLAMA_3.replace(r"\p{N}{1,3}", r"\p{N}")


def _byte_level(*, regex: bool) -> Data:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": regex}


def _split(pattern: str) -> list[Data]:
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return [split, _byte_level(regex=False)]


_GPT_2 = [_byte_level(regex=True)]
_DIGITS = [{"type": "Digits", "individual_digits": True}, _byte_level(regex=True)]
_SPLITS: Mapping[str, list[Data]] = {
    "gpt-2": _GPT_2,
    "smollm": _DIGITS,
    "starcoder": _DIGITS,
    "refact": _DIGITS,
    "llama-bpe": _split(_LLAMA_3),
    "llama-v3": _split(_LLAMA_3),
    "llama3": _split(_LLAMA_3),
    "qwen2": _split(_QWEN_2),
    "deepseek-r1-qwen": _split(_QWEN_2),
}
"""How text is split before merging, by the file's ``tokenizer.ggml.pre``."""

_BEGINS = frozenset({"llama-bpe", "llama-v3", "llama3"})
"""Rules whose tokenizers put a begin-of-sequence token first unless the file says otherwise."""

_WHOLE_WORDS = _BEGINS
"""Rules whose tokenizers take a word that is a token as it is, whatever its merges would give."""

_UNKNOWN, _CONTROL, _USER_DEFINED = 2, 3, 4
"""The types of tokens that are matched whole in a text (4), are special (3), or stand for what has no token (2)."""

_KEYS = tuple(f"tokenizer.ggml.{key}" for key in ("tokens", "token_type", "merges", "scores"))
_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
"""SentencePiece's mark for a space."""

GENERATION = {
    "bos_token_id": "bos_token_id",
    "eos_token_id": "eos_token_id",
    "padding_token_id": "pad_token_id",
}
"""The ids of special tokens in ``generation_config.json``, by their names in a GGUF file."""


def gguf_tokenizer(path: Path) -> dict[str, str]:
    """Return the contents of ``tokenizer.json``, ``tokenizer_config.json`` and ``generation_config.json``, by name.

    The first two are omitted where the file has no tokenizer or one of an unsupported kind. Raises
    :class:`zoo.weights.source.WeightError` for an unreadable file.
    """
    status = path.stat()
    return dict(_read(path, status.st_mtime_ns, status.st_size))


@functools.lru_cache(maxsize=1)
def _read(path: Path, modified: int, size: int) -> Mapping[str, str]:
    """Return the files; the last path's files are cached, as reading lists of strings takes seconds."""
    metadata = _Metadata(read_header(path, whole=_KEYS).metadata)
    files: dict[str, Data] = {}
    if (tokenizer := _tokenizer(metadata)) is not None:
        files |= {"tokenizer.json": tokenizer, "tokenizer_config.json": _config(metadata)}
    ids = {ours: metadata.id_of(theirs) for theirs, ours in GENERATION.items()}
    if special_ids := {name: token for name, token in ids.items() if token is not None}:
        files["generation_config.json"] = special_ids
    return {name: json.dumps(data, indent=2, ensure_ascii=False) + "\n" for name, data in files.items()}


class _Metadata:
    """The tokenizer metadata of a file; values of a wrong type count as absent."""

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        self._metadata = metadata
        self.kind, self.pre = (self._text(f"ggml.{key}") for key in ("model", "pre"))
        self.template = self._text("chat_template")
        self.tokens = self._list("tokens", str)
        self.types = self._list("token_type", int)
        self.merges = self._list("merges", str)
        self.scores = self._list("scores", float)

    def flag(self, key: str, default: bool) -> bool:
        value = self._metadata.get(f"tokenizer.ggml.{key}")
        return value if isinstance(value, bool) else default

    def id_of(self, key: str) -> int | None:
        """A special token's id."""
        value = self._metadata.get(f"tokenizer.ggml.{key}")
        return value if type(value) is int and value >= 0 else None

    def token(self, key: str) -> str | None:
        """A special token."""
        value = self.id_of(key)
        return self.tokens[value] if value is not None and value < len(self.tokens) else None

    @property
    def begins(self) -> bool:
        """Return whether texts begin with a special token."""
        return self.flag("add_bos_token", self.kind == "llama" or self.pre in _BEGINS)

    def _text(self, key: str) -> str:
        value = self._metadata.get(f"tokenizer.{key}")
        return value if isinstance(value, str) else ""

    def _list(self, key: str, kind: type) -> list[Any]:
        value = self._metadata.get(f"tokenizer.ggml.{key}")
        return value if isinstance(value, list) and all(isinstance(entry, kind) for entry in value) else []


def _tokenizer(metadata: _Metadata) -> Data | None:
    vocabulary = {token: number for number, token in enumerate(metadata.tokens)}
    if not vocabulary or len(vocabulary) != len(metadata.tokens):
        return None
    if metadata.kind == "gpt2" and metadata.pre in _SPLITS and metadata.merges:
        parts = _byte_level_parts(metadata, vocabulary)
    elif metadata.kind == "llama" and len(metadata.scores) == len(vocabulary):
        parts = _sentencepiece_parts(metadata, vocabulary)
    else:
        return None
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": list(_added(metadata)),
        **parts,
        "post_processor": _template(metadata),
    }


def _byte_level_parts(metadata: _Metadata, vocabulary: Mapping[str, int]) -> Data:
    model = _bpe(
        vocabulary, [merge.split(" ") for merge in metadata.merges], ignore=metadata.pre in _WHOLE_WORDS
    )
    normalizer = {"type": "NFC"} if metadata.pre in ("qwen2", "deepseek-r1-qwen") else None
    return {
        "normalizer": normalizer,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": _SPLITS[metadata.pre]},
        "decoder": _byte_level(regex=True),
        "model": model,
    }


def _sentencepiece_parts(metadata: _Metadata, vocabulary: Mapping[str, int]) -> Data:
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": _SPACE}
    prefixed = metadata.flag("add_space_prefix", True)
    prepend = [{"type": "Prepend", "prepend": _SPACE}] if prefixed else []
    strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prefixed else []
    decoders = [
        {"type": "Replace", "pattern": {"String": _SPACE}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        *strip,
    ]
    unknown = next(
        (token for token, kind in zip(metadata.tokens, metadata.types, strict=False) if kind == _UNKNOWN),
        None,
    )
    model = {
        **_bpe(vocabulary, _merges(vocabulary, metadata.scores)),
        "unk_token": unknown,
        "fuse_unk": True,
        "byte_fallback": "<0x00>" in vocabulary,
    }
    return {
        "normalizer": {"type": "Sequence", "normalizers": [*prepend, replace]},
        "pre_tokenizer": None,
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": model,
    }


def _bpe(vocabulary: Mapping[str, int], merges: Sequence[Sequence[str]], *, ignore: bool = False) -> Data:
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": ignore,
        "vocab": dict(vocabulary),
        "merges": [list(merge) for merge in merges if len(merge) == 2],
    }


def _merges(vocabulary: Mapping[str, int], scores: Sequence[float]) -> list[tuple[str, str]]:
    """Return all pairs of tokens that form a token, best scores first: SentencePiece merges the pair with the best score."""
    merges = []
    for token, score in zip(vocabulary, scores, strict=True):
        for cut in range(1, len(token)):
            left, right = token[:cut], token[cut:]
            if left in vocabulary and right in vocabulary:
                merges.append((-score, vocabulary[left], vocabulary[right], left, right))
    return [(left, right) for *_, left, right in sorted(merges)]


def _added(metadata: _Metadata) -> list[Data]:
    """Return the added tokens, which are never split, in the order of their ids."""
    return [
        {
            "id": number,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": kind != _USER_DEFINED,
        }
        for number, (token, kind) in enumerate(zip(metadata.tokens, metadata.types, strict=False))
        if kind in (_UNKNOWN, _CONTROL, _USER_DEFINED) and token
    ]


def _template(metadata: _Metadata) -> Data | None:
    """The special tokens around a text."""
    first = metadata.token("bos_token_id") if metadata.begins else None
    last = metadata.token("eos_token_id") if metadata.flag("add_eos_token", False) else None
    if first is None and last is None:
        return None

    def around(*names: str) -> list[Data]:
        pieces: list[Data] = []
        for type_id, name in enumerate(names):
            pieces += [_special(first, type_id)] if first is not None else []
            pieces.append({"Sequence": {"id": name, "type_id": type_id}})
            pieces += [_special(last, type_id)] if last is not None else []
        return pieces

    used = {token: metadata.tokens.index(token) for token in (first, last) if token is not None}
    return {
        "type": "TemplateProcessing",
        "single": around("A"),
        "pair": around("A", "B"),
        "special_tokens": {
            token: {"id": token, "ids": [number], "tokens": [token]} for token, number in used.items()
        },
    }


def _special(token: str, type_id: int) -> Data:
    return {"SpecialToken": {"id": token, "type_id": type_id}}


def _config(metadata: _Metadata) -> Data:
    """Return the tokenizer_config.json that transformers reads in addition."""
    names = {"bos_token": "bos_token_id", "eos_token": "eos_token_id", "unk_token": "unknown_token_id",
             "pad_token": "padding_token_id"}  # fmt: skip
    tokens = {ours: metadata.token(theirs) for ours, theirs in names.items()}
    config: Data = {name: token for name, token in tokens.items() if token is not None}
    if metadata.template:
        config["chat_template"] = metadata.template
    return {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **config}
