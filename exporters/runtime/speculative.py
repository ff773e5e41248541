"""Speculative decoding (Leviathan et al., 2023): a draft model proposes tokens, and the target scores all of them in one call.

Greedy decoding gives the tokens of the target alone, and sampling draws from its distribution.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from exporters.runtime.draft import (
    Drafter,
    NextTokenDrafter,
    Proposal,
    check_draft,
)
from exporters.runtime.exported import Exported
from exporters.runtime.generation import Continuation, Ending, Generation, Generator
from exporters.runtime.graph import Floats
from zoo.generation.sampling import GREEDY, Sampling, Shares, check_finite, draw, probabilities
from zoo.generation.score_rules import ScoreRules
from zoo.generation.settings import stops


@dataclass(frozen=True)
class DraftedGeneration(Generation):
    """A generation with a draft: the numbers of tokens that the draft ``proposed``, of those ``accepted``, and of ``calls`` of the
    target after those that read the prompts."""

    proposed: int
    accepted: int
    calls: int

    @property
    def acceptance(self) -> float | None:
        """The accepted share of the proposed tokens; None without any."""
        return self.accepted / self.proposed if self.proposed else None

    @property
    def tokens_per_call(self) -> float | None:
        """The tokens that a call of the target gives; None without calls."""
        later = sum(len(continuation.ids) - 1 for continuation in self.continuations)
        return later / self.calls if self.calls else None


class SpeculativeGenerator:
    """A target and a draft, loaded; the draft proposes up to ``draft_tokens`` tokens at a time.

    Raises :class:`specs.base.errors.UserError` as :func:`exporters.runtime.draft.check_draft` does.
    """

    def __init__(self, target: Exported, draft: Exported, draft_tokens: int, threads: int = 0) -> None:
        check_draft(target, draft)
        self.target, self.draft = (Generator(exported, threads, in_turn=True) for exported in (target, draft))
        self.draft_tokens, self.reads_hidden = draft_tokens, draft.spec.reads_hidden_states
        self.load_seconds = self.target.load_seconds + self.draft.load_seconds
        self.provider = self.target.provider

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        most: int,
        sampling: Sampling = GREEDY,
        *,
        stop: Collection[int] | None = None,
        tell: Callable[[list[int]], None] = lambda tokens: None,
    ) -> DraftedGeneration:
        """Continue prompts one after another, as :meth:`exporters.runtime.generation.Generator.generate` does.

        ``tell`` is called with each token.
        """
        ends = stops(stop, self.target.exported.settings)
        parts = [
            _Sequence(self, list(prompt), row, most, sampling, ends, tell).generation()
            for row, prompt in enumerate(prompts)
        ]
        return DraftedGeneration.joined(parts)

    def without_draft(
        self,
        prompts: Sequence[Sequence[int]],
        most: int,
        sampling: Sampling = GREEDY,
        *,
        stop: Collection[int] | None = None,
    ) -> Generation:
        """Continue the same prompts one after another with the target alone."""
        parts = [self.target.generate([prompt], most, sampling, stop=stop) for prompt in prompts]
        return Generation.joined(parts)


class _Sequence:
    """The continuation of one prompt."""

    def __init__(
        self,
        generator: SpeculativeGenerator,
        prompt: list[int],
        row: int,
        most: int,
        sampling: Sampling,
        stop: Collection[int],
        tell: Callable[[list[int]], None],
    ) -> None:
        self._begun = time.perf_counter()
        target = generator.target
        self._prompt, self._most, self._sampling, self._stop, self._tell = prompt, most, sampling, stop, tell
        self._fitting = min(most, target.room([prompt]))
        drafter = NextTokenDrafter if generator.reads_hidden else Drafter
        self._target, _ = target.begin([prompt], self._fitting, 0, keeps_hidden=drafter.reads_hidden)
        self._rules = ScoreRules(target.exported.settings, [prompt], [prompt], self._fitting, stop)
        self._random = np.random.default_rng([sampling.seed, row])
        self._draft_tokens = generator.draft_tokens
        self._ids: list[int] = []
        vocabulary = target.spec.vocab_size
        assert vocabulary is not None
        self._drafter = drafter(
            generator.draft, prompt, self._fitting, vocabulary, self._shares, self._random
        )

    def generation(self) -> DraftedGeneration:
        """Generate to the end."""
        scores = self._target.read([self._prompt])[0]
        self._learn(0, len(self._prompt))
        self._add([draw(self._shares(scores, []), self._random)])
        first = time.perf_counter() - self._begun
        unread, proposed, accepted, calls = self._ids[:], 0, 0, 0
        while len(self._ids) < self._fitting and self._ids[-1] not in self._stop:
            most = min(self._draft_tokens, self._fitting - len(self._ids) - 1)
            replays = len(unread) > self._draft_tokens + 1  # of a state that cannot be divided
            drafts = [] if replays else self._drafter.propose([*self._prompt, *self._ids], most)
            scores = self._target.score([*unread, *(draft.token for draft in drafts)])
            tokens = self._checked(scores[len(unread) - 1 :], drafts)
            self._learn(self._target.cache.past, len(unread) + len(tokens) - 1)
            kept = self._kept(len(unread), len(drafts), len(tokens) - 1)
            unread = [*unread, *tokens][kept:]
            added = self._add(tokens)
            proposed, accepted, calls = (
                proposed + len(drafts), accepted + min(len(tokens) - 1, added), calls + 1,
            )  # fmt: skip
        rest = time.perf_counter() - self._begun - first
        ending: Ending = "max_new_tokens" if self._fitting == self._most else "end of context"
        if self._ids[-1] in self._stop:
            ending = "stop token"
        continuation = Continuation(self._prompt, self._ids, ending)
        return DraftedGeneration([continuation], first, rest, proposed, accepted, calls)

    def _learn(self, first: int, count: int) -> None:
        """Hand the hidden states of the first tokens of the last call to a draft that reads them."""
        if self._drafter.reads_hidden:
            self._drafter.learn(first, self._target.hidden[0, :count])

    def _kept(self, unread: int, drafts: int, accepted: int) -> int:
        """Keep the tokens of the last call that are right: all of them, or, after a rejection, as many as can be kept of the
        target's state; return their number."""
        if accepted < drafts and not self._target.cache.divisible:
            return 0
        self._target.keep(unread + accepted)
        return unread + accepted

    def _checked(self, scores: Floats, drafts: Sequence[Proposal]) -> list[int]:
        """The drafts that the target accepts, and one token of its own, from its scores after each token, 1 + drafts V."""
        tokens: list[int] = []
        for row, draft in zip(scores, drafts, strict=False):
            tokens.append(accepted_or_drawn(self._shares(row, tokens), draft, self._random))
            if tokens[-1] != draft.token:
                return tokens
        return [*tokens, draw(self._shares(scores[len(drafts)], tokens), self._random)]

    def _shares(self, scores: Floats, after: Sequence[int]) -> Shares:
        """The probability of each token after the sequence and some more tokens, from its scores, V."""
        ruled = self._rules.apply(scores[None], [[*self._ids, *after]])
        check_finite(ruled)
        return probabilities(ruled[0], self._sampling)

    def _add(self, tokens: Sequence[int]) -> int:
        """Add tokens, up to a stop token; return their number."""
        for count, token in enumerate(tokens, 1):
            self._ids.append(token)
            self._tell([token])
            if token in self._stop:
                return count
        return len(tokens)


def accepted_or_drawn(wanted: Shares, draft: Proposal, random: np.random.Generator) -> int:
    """Accept a proposed token, or draw another, so that the result has the probabilities ``wanted``, p.

    With q as the probabilities of the proposal, it is accepted with probability min(1, p/q); another is drawn by max(p - q, 0).
    """
    if random.random() * draft.shares[draft.token] < wanted[draft.token]:
        return draft.token
    rest = np.maximum(wanted - draft.shares, 0)
    return draw(rest / rest.sum() if rest.any() else wanted, random)


def first_difference(done: Generation, alone: Generation) -> int | None:
    """The index of the first token that two generations do not share, in the first sequence with one; None if there is none."""
    for first, second in zip(done.continuations, alone.continuations, strict=True):
        if first.ids != second.ids:
            pairs = enumerate(zip(first.ids, second.ids, strict=False))
            shorter = min(len(first.ids), len(second.ids))
            return next((index for index, (a, b) in pairs if a != b), shorter)
    return None


def reason_for_difference(target: Exported) -> str:
    """Why a target scores several tokens differently than one."""
    if target.manifest.precision == "int8":
        return "int8 rounds the inputs of all tokens of a call with one scale. Export in int4 or a float precision to avoid it"
    return "its best tokens score equally, within rounding error"
