"""Entities in texts: spans of words with labels that the caller names, as GLiNER's client finds them.

Shapes: batch B, tokens T, words W, spans S, labels C.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from exporters.runtime.encoding import EncoderRunner
from exporters.runtime.graph import Floats
from exporters.runtime.text import TextTokenizer
from exporters.runtime.tokens import padded, word_inputs
from specs.base.errors import UserError
from specs.kinds.spans import Spans
from zoo.generation.prompts import check_prompts
from zoo.weights.names import GLINER

SEPARATOR = "<<SEP>>"
"""The token between the labels and the text, unless GLiNER's config states another."""

_SPLITTER = "whitespace"
"""The library's name of the pattern below."""

THRESHOLD = 0.5
"""The score that an entity must exceed."""

_WORDS = re.compile(r"\w+(?:[-_]\w+)*|\S")


@dataclass(frozen=True)
class Entity:
    """A span of a text, by the first character and the one after the last, with its label and score."""

    start: int
    end: int
    text: str
    label: str
    score: float


@dataclass(frozen=True)
class _Prompt:
    """A text as token ids, the number of the word that each stands for, from 1, or 0, and the characters of its words."""

    ids: list[int]
    numbers: list[int]
    words: list[tuple[int, int]]


class SpanRunner:
    """An encoder that scores spans, loaded, with its tokenizer and GLiNER's config.

    Raises :class:`specs.base.errors.UserError` for a config whose words are split in another way.
    """

    def __init__(
        self, encoder: EncoderRunner, tokenizer: TextTokenizer, config: Mapping[str, object] | None = None
    ) -> None:
        assert isinstance(encoder.spec.head, Spans)
        config = config or {}
        if (splitter := config.get("words_splitter_type", _SPLITTER)) != _SPLITTER:
            raise UserError(
                f"{GLINER}: words_splitter_type: must be {_SPLITTER}, as texts are split into words in no other way\n"
                f"  value: {splitter!r}\n  Split them with GLiNER, and run model.onnx on its inputs."
            )
        self._encoder, self._tokenizer, self._head = encoder, tokenizer, encoder.spec.head
        self._marks = tokenizer.token(self._head.label_token), str(config.get("sep_token", SEPARATOR))
        self._last = config.get("subtoken_pooling") == "last"

    def entities(
        self, texts: Sequence[str], labels: Sequence[str], threshold: float = THRESHOLD
    ) -> list[list[Entity]]:
        """The entities of each text, which do not overlap, with a score above the ``threshold``, in their order.

        Raises :class:`specs.base.errors.UserError` for labels that hold the label token, for texts longer than the context, and where
        the tokenizer does not keep the label token whole.
        """
        mark = self._marks[0]
        if wrong := next((label for label in labels if not label.strip() or mark in label), None):
            raise UserError(f"A label must be a word or a few, without {mark}\n  value: {wrong!r}")
        prompts = [self._prompt(text, labels) for text in texts]
        if any(prompt.ids.count(self._head.label_token) < len(labels) for prompt in prompts):
            raise UserError(
                f"{self._tokenizer.path} splits {mark}, the token before each label, whose id is {self._head.label_token}\n"
                "  Pass the tokenizer that the model was saved with."
            )
        encoder = self._encoder.spec.encoder
        assert encoder is not None
        check_prompts(self._encoder.spec, encoder, [prompt.ids for prompt in prompts])
        ids, mask = padded([prompt.ids for prompt in prompts], right=True)
        numbers, _ = padded([prompt.numbers for prompt in prompts], right=True)
        logits = self._encoder.of_words(ids, mask, word_inputs(numbers, self._head.max_width))["logits"]
        return [
            [
                Entity(first, last, text[first:last], labels[label], score)
                for start, end, label, score in _chosen(scores[: len(prompt.words)], len(labels), threshold)
                for first, last in [(prompt.words[start][0], prompt.words[end][1])]
            ]
            for text, prompt, scores in zip(texts, prompts, logits, strict=True)
        ]

    def _prompt(self, text: str, labels: Sequence[str]) -> _Prompt:
        """The labels, each after the label token, and the words of a text that have tokens."""
        mark, separator = self._marks
        before = [part for label in labels for part in (mark, label)] + [separator]
        spans = [match.span() for match in _WORDS.finditer(text)]
        ids, owners = self._tokenizer.of_words([*before, *(text[start:end] for start, end in spans)])
        beside = [*owners[1:], None] if self._last else [None, *owners[:-1]]
        numbers: list[int] = []
        words: list[tuple[int, int]] = []
        for owner, other in zip(owners, beside, strict=True):
            if stands := owner is not None and owner >= len(before) and owner != other:
                words.append(spans[owner - len(before)])
            numbers.append(len(words) if stands else 0)
        return _Prompt(ids, numbers, words)


def _chosen(logits: Floats, labels: int, threshold: float) -> Iterator[tuple[int, int, int, float]]:
    """The first and last word, label and score of entities, W widths C: best first those that overlap no better one, in order."""
    scores = 1 / (1 + np.exp(-logits[..., :labels].astype(np.float64)))
    candidates = np.argwhere(scores > threshold)
    order = np.argsort([-scores[tuple(candidate)] for candidate in candidates], kind="stable")
    chosen: list[tuple[int, int, int, float]] = []
    for start, width, label in candidates[order]:
        end = start + width
        if end < len(logits) and all(end < other[0] or other[1] < start for other in chosen):
            chosen.append((int(start), int(end), int(label), float(scores[start, width, label])))
    return iter(sorted(chosen))
