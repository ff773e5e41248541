"""Draft models: whether an export can draft for another, and the tokens that it proposes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from exporters.runtime.decoding import Decoding
from exporters.runtime.exported import Exported
from exporters.runtime.generation import Generator
from exporters.runtime.graph import Floats
from exporters.runtime.text import find_text
from specs.base.errors import UserError, option_name
from zoo.core.graph_names import HIDDEN
from zoo.generation.sampling import Shares, draw

Chooses = Callable[[Floats, Sequence[int]], Shares]
"""Returns the probability of each token, V, from its scores, V, and the tokens before it."""

DRAFT_TOKENS = 4
"""The number of tokens that a draft proposes at a time by default."""

_LISTED = 3


def check_draft(target: Exported, draft: Exported) -> None:
    """Raise :class:`specs.base.errors.UserError` unless both exports are decoders of one vocabulary, and the target scores all
    tokens of a call.

    The vocabularies are those of the tokenizers beside the exports; without them, the sizes must be equal.
    """
    for exported, what in ((target, "The target of a draft"), (draft, "A draft")):
        spec = exported.spec
        if spec.architecture != "decoder" or not spec.head.predicts_next:
            raise UserError(
                f"{what} must be a decoder with a head of kind language_modeling.\n"
                f"  value: {exported.directory}, {spec.architecture}, head {spec.head.kind}\n"
                f"  Leave out {option_name('draft')}, or choose another export."
            )
        if exported.manifest.options.window_cache:
            raise UserError(
                f"{what} must be able to drop tokens from its cache, and a cache that holds a window alone is not.\n"
                f"  value: {exported.directory}, {option_name('window_cache')}\n"
                f"  Export it again without {option_name('window_cache')}."
            )
    if target.manifest.options.logits == "last":
        raise UserError(
            f"The target of a draft must return scores of all tokens.\n"
            f"  value: {target.directory}, {option_name('logits')} last\n"
            f"  Export it again with {option_name('logits')} all."
        )
    if target.spec.reads_hidden_states:
        raise UserError(
            f"The target of a draft must read tokens alone.\n"
            f"  value: {target.directory}, embedding {target.spec.embedding_of(target.spec.last_stack).kind}\n"
            f"  Choose the model whose hidden states it reads."
        )
    if draft.spec.reads_hidden_states:
        _check_hidden_states(target, draft)
    vocabularies = [_vocabulary(exported.directory) for exported in (target, draft)]
    if None not in vocabularies:
        _check_tokens(target.directory, draft.directory, *filter(None, vocabularies))
    elif target.spec.vocab_size != draft.spec.vocab_size:
        raise UserError(
            "A draft must have the vocabulary of its target.\n"
            f"  value: {target.directory} has {target.spec.vocab_size} tokens, {draft.directory} has {draft.spec.vocab_size}\n"
            "  Choose a draft of the same family, or put both tokenizers beside the exports if only padding differs."
        )


def _check_hidden_states(target: Exported, draft: Exported) -> None:
    """Raise :class:`specs.base.errors.UserError` unless the target returns the hidden states that the draft reads."""
    *_, graph = target.manifest.graphs.values()
    if HIDDEN not in graph.outputs:
        raise UserError(
            f"The target of a draft that reads hidden states must return them.\n"
            f"  value: {target.directory} has no output {HIDDEN}\n"
            f"  Export it again with {option_name('outputs')} {HIDDEN}."
        )
    if target.spec.output_width != draft.spec.output_width:
        raise UserError(
            f"The hidden states of a target must be as wide as those that its draft reads.\n"
            f"  value: {target.directory} has {target.spec.output_width}, {draft.directory} reads {draft.spec.output_width}\n"
            f"  Choose a draft of the same checkpoint."
        )


def _vocabulary(directory: Path) -> dict[str, int] | None:
    """The ids of the tokens of the tokenizer beside an export, if there is one."""
    text = find_text(directory, None, needed=False)
    return None if text is None else text.vocabulary


def _check_tokens(target: Path, draft: Path, first: dict[str, int], second: dict[str, int]) -> None:
    """Raise :class:`specs.base.errors.UserError` where two tokenizers differ."""
    different = sorted(
        token for token in first.keys() | second.keys() if first.get(token) != second.get(token)
    )
    if different:
        examples = ", ".join(
            f"{token!a} is {first.get(token, 'missing')} and {second.get(token, 'missing')}"
            for token in different[:_LISTED]
        )
        raise UserError(
            f"A draft must have the tokenizer of its target: {len(different):,} tokens of {target} and {draft} differ.\n"
            f"  value: {examples}\n  Choose a draft of the same family."
        )


@dataclass(frozen=True)
class Proposal:
    """A proposed token, and the probabilities, V, that it was drawn by."""

    token: int
    shares: Shares


class Drafter:
    """A draft model that continues one sequence of at most ``room`` tokens.

    ``reads_hidden``: whether it reads the target's hidden states. ``chooses`` gives its probabilities. Scores and ids are those of
    the target's vocabulary: a draft whose embedding has fewer or more rows reads ids that it lacks as its last, and proposes no token
    that the target lacks.
    """

    reads_hidden: ClassVar[bool] = False

    def __init__(
        self,
        generator: Generator,
        prompt: Sequence[int],
        most: int,
        vocabulary: int,
        chooses: Chooses,
        random: np.random.Generator,
    ) -> None:
        assert generator.spec.vocab_size is not None
        self._last = generator.spec.vocab_size - 1
        self._room = min(len(prompt) + most, generator.longest)
        room = max(0, self._room - len(prompt))
        begin = functools.partial(generator.begin, keeps_hidden=self.reads_hidden)
        self._decoding = begin([self._known(prompt)], room, 0)[0] if room else None
        self._vocabulary, self._chooses, self._random = vocabulary, chooses, random
        self._read: list[int] = []

    def propose(self, tokens: Sequence[int], count: int) -> list[Proposal]:
        """Up to ``count`` tokens after ``tokens``, which begin with all tokens of earlier calls; fewer at the end of the draft's
        context."""
        count = min(count, self._room - len(tokens) + 1)
        if count <= 0 or self._decoding is None:
            return []
        scores = self._caught_up(self._decoding, tokens)
        self._decoding.cache.mark()
        proposals: list[Proposal] = []
        for _ in range(count):
            if proposals:
                scores = self._after(self._decoding, proposals[-1].token)
            shares = self._chooses(self._aligned(scores), [proposal.token for proposal in proposals])
            proposals.append(Proposal(draw(shares, self._random), shares))
        return proposals

    def learn(self, first: int, hidden: Floats) -> None:
        """Take the target's hidden states of the tokens from ``first`` on, T D; a draft that reads tokens alone needs none."""

    def _caught_up(self, decoding: Decoding, tokens: Sequence[int]) -> Floats:
        """The scores of the token after ``tokens``."""
        kept = _common(self._read, tokens[:-1])
        if kept < len(self._read):
            kept = decoding.rewind(kept)
        self._read = list(tokens)
        return decoding.read([self._known(tokens[kept:])])[0]

    def _after(self, decoding: Decoding, token: int) -> Floats:
        """The scores of the token after a proposed one."""
        self._read.append(token)
        return decoding.read([self._known([token])])[0]

    def _known(self, tokens: Sequence[int]) -> list[int]:
        return [min(token, self._last) for token in tokens]

    def _aligned(self, scores: Floats) -> Floats:
        """Scores for the target's vocabulary."""
        if len(scores) == self._vocabulary:
            return scores
        aligned = np.full(self._vocabulary, -np.inf, np.float32)
        common = min(len(scores), self._vocabulary)
        aligned[:common] = scores[:common]
        return aligned


class NextTokenDrafter(Drafter):
    """A draft that reads each token beside the target's hidden state of the token before: after its own proposals, its own."""

    reads_hidden: ClassVar[bool] = True

    def __init__(self, *values: Any) -> None:
        super().__init__(*values)
        self._learned = self._states = (
            0  # hidden states that the target has given, and those that the draft has read
        )
        self._unread: list[Floats] = []

    def learn(self, first: int, hidden: Floats) -> None:
        new = hidden[self._learned - first :]
        self._learned += len(new)
        self._unread.append(new)

    def _caught_up(self, decoding: Decoding, tokens: Sequence[int]) -> Floats:
        if decoding.cache.past > self._states:
            decoding.rewind(self._states)
        hidden, self._unread = np.concatenate(self._unread)[None], []
        read = tokens[self._states + 1 : self._learned + 1]
        self._states = self._learned
        return decoding.read([self._known(read)], beside=hidden)[0]

    def _after(self, decoding: Decoding, token: int) -> Floats:
        return decoding.read([self._known([token])], beside=decoding.hidden[:, -1:])[0]


def _common(first: Sequence[int], second: Sequence[int]) -> int:
    """The length of the common beginning of two sequences."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(first), len(second)))
