"""The settings of a sentence-transformers checkpoint: length of texts, prompt before them, width of vectors."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeGuard, get_args

from specs.base.errors import UserError
from zoo.files.json_values import read_object
from zoo.weights.modules import PROMPTS, SETTINGS

TOKENIZER = "tokenizer_config.json"

Similarity = Literal["cosine", "dot", "euclidean", "manhattan", "maxsim"]
"""The functions that compare two texts; maxsim is late interaction, the only one for vectors of tokens."""

_ROLES = {"query": ("query",), "document": ("document", "passage", "corpus")}
"""The names of the prompts for a role, in order of preference."""

_UNAPPLIED = (
    "query_length", "document_length", "query_expansion", "query_prefix", "document_prefix", "do_query_expansion",
    "skiplist_words",
)  # fmt: skip
"""The settings of late interaction that change which tokens count."""


@dataclass(frozen=True)
class SentenceUsage:
    """The token limit of a text (None: no limit), the prompt before each text, whether texts are lowercased, and the number of
    dimensions of a vector to keep (None: all).

    ``prompts`` are the prompts by name, ``similarity`` is the function that compares vectors (None: the head's), and ``unapplied``
    names the settings of late interaction that are not applied.
    """

    most: int | None = None
    before: str = ""
    lower: bool = False
    dimensions: int | None = None
    prompts: Mapping[str, str] = field(default_factory=dict)
    similarity: Similarity | None = None
    unapplied: tuple[str, ...] = ()

    def of(self, role: Literal["query", "document"]) -> SentenceUsage:
        """The settings for the texts of a role, whose prompt precedes each if there is one."""
        prompt = next((self.prompts[name] for name in _ROLES[role] if name in self.prompts), self.before)
        return replace(self, before=prompt)

    @classmethod
    def beside(cls, directory: Path, context: int | None) -> SentenceUsage:
        """Read the settings in a directory, as sentence-transformers does, for a model with this context.

        Raises :class:`specs.base.errors.UserError`, naming file and field, for wrong values.
        """
        settings, prompts = (_UsageFile(directory / name) for name in (SETTINGS, PROMPTS))
        most = settings.get("max_seq_length", _is_size, "a whole number, 1 or more")
        if most is None and settings.path.exists():
            length = _UsageFile(directory / TOKENIZER).fields.get("model_max_length")
            limits = filter(_is_size, (length, context))
            most = min(limits, default=None)
        named = prompts.get("prompts", _are_texts, "texts by their names") or {}
        default = prompts.get(
            "default_prompt_name", named.__contains__, f"one of {', '.join(named) or 'prompts'}"
        )
        return cls(
            most,
            "" if default is None else named[default],
            settings.get("do_lower_case", _is_flag, "true or false") or False,
            prompts.get("truncate_dim", _is_size, "a whole number, 1 or more"),
            named,
            prompts.get(
                "similarity_fn_name", _SIMILARITIES.__contains__, f"one of {', '.join(_SIMILARITIES)}"
            ),
            tuple(name for name in _UNAPPLIED if settings.fields.get(name) or prompts.fields.get(name)),
        )


_SIMILARITIES = get_args(Similarity)


class _UsageFile:
    """The fields of a JSON file; empty if it is absent."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fields = read_object(path, UserError, path.parent) if os.path.lexists(path) else {}

    def get(self, name: str, good: Callable[[Any], bool], rule: str) -> Any:
        """A field; None if it is absent or null. Raises :class:`specs.base.errors.UserError` for wrong values."""
        value = self.fields.get(name)
        if value is not None and not good(value):
            raise UserError(
                f"{self.path}: {name} must be {rule}\n  value: {value!r}\n  Correct the field, or remove it."
            )
        return value


def _is_size(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _are_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())
