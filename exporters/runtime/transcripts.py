"""Greedy decoding of CTC labels to text (connectionist temporal classification, Graves et al., 2006)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from exporters.runtime.graph import Floats
from exporters.runtime.text import TextTokenizer
from zoo.checkpoints.carried import stated_in


def collapsed(labels: Sequence[int], blank: int) -> list[int]:
    """The labels of successive frames, without repetitions and then without blanks."""
    return [label for label, _ in itertools.groupby(labels) if label != blank]


def best_labels(logits: Floats, blank: int) -> list[int]:
    """The labels of the most likely path: T labels -> at most T."""
    return collapsed(logits.argmax(-1).tolist(), blank)


@dataclass(frozen=True)
class CharacterVocabulary:
    """The character vocabulary of a checkpoint (Wav2Vec2CTCTokenizer): characters by id, and the character for a space."""

    names: dict[int, str]
    space: str
    lower: bool

    @classmethod
    def beside(cls, directory: Path) -> CharacterVocabulary | None:
        """The vocabulary in a directory's vocab.json; None without one."""
        vocabulary = stated_in(directory / "vocab.json")
        names = {label: name for name, label in vocabulary.items() if isinstance(label, int)}
        settings = stated_in(directory / "tokenizer_config.json")
        space = settings.get("word_delimiter_token") or "|"
        return cls(names, str(space), settings.get("do_lower_case") is True) if names else None

    def text(self, labels: Sequence[int]) -> str:
        """The text of labels without repetitions and blanks."""
        text = "".join(self.names.get(label, "") for label in labels).replace(self.space, " ").strip()
        return text.lower() if self.lower else text


def spoken_text(
    labels: Sequence[int], blank: int, characters: CharacterVocabulary | None, tokenizer: TextTokenizer | None
) -> str | None:
    """Decode labels without repetitions and blanks, by a character vocabulary or a tokenizer; None without either."""
    if characters is not None:
        return characters.text(labels)
    return None if tokenizer is None else tokenizer.text(separated(labels, blank, tokenizer)).strip()


def separated(labels: Sequence[int], blank: int, tokenizer: TextTokenizer) -> list[int]:
    """Insert a blank between equal labels, for a tokenizer that drops repetitions itself."""
    if not tokenizer.collapses:
        return list(labels)
    pairs = zip(labels, [None, *labels], strict=False)
    return [token for label, before in pairs for token in ((blank, label) if label == before else (label,))]
