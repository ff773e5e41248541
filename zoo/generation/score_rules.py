"""The rules of a checkpoint's generation_config.json on the scores of the next token, as transformers applies them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from zoo.generation.sampling import Floats
from zoo.generation.settings import NO_SETTINGS, GenerationSettings

Rows = Sequence[Sequence[int]]


class ScoreRules:
    """The rules for some rows, which begin with the tokens ``first`` and end with one of ``stop`` or after ``most`` tokens.

    ``read`` are the tokens that an encoder read, or the prompts of a decoder; None for images and sounds. Source: transformers'
    ``generation/logits_process.py``, in the order of ``_get_logits_processor``.
    """

    def __init__(
        self, settings: GenerationSettings, first: Rows, read: Rows | None, most: int, stop: Collection[int]
    ) -> None:
        self._settings, self._first, self._read, self._most = settings, first, read, most
        self._stop = sorted(stop)
        self._begin = settings.first_tokens()

    def apply(self, scores: Floats, generated: Rows) -> Floats:
        """The scores of the next token of each row, B V, given the tokens found so far."""
        if self._settings == NO_SETTINGS:
            return scores
        scores = scores.astype(np.float32)  # a copy
        for row, tokens in enumerate(generated):
            if len(tokens) < len(self._begin):
                _keep_only(scores[row], self._begin[len(tokens)])
            else:
                self._apply_to(scores[row], row, tokens)
        return scores

    def _apply_to(self, scores: Floats, row: int, generated: Sequence[int]) -> None:
        """Change the scores V of one row in place."""
        settings, first = self._settings, self._first[row]
        read = () if self._read is None else self._read[row]
        tokens = [*first, *generated]
        for ids, bias in settings.get("sequence_bias", list[Any]()):
            if _ends_with(tokens, ids[:-1]):
                _add(scores, ids[-1:], bias)
        _divide(scores, read, 1 / settings.get("encoder_repetition_penalty", 1.0))
        _divide(scores, tokens, settings.get("repetition_penalty", 1.0))
        _ban(scores, _followers(tokens, tokens, settings.get("no_repeat_ngram_size", 0)))
        _ban(scores, _followers(read, tokens, settings.get("encoder_no_repeat_ngram_size", 0)))
        for ids in settings.get("bad_words_ids", []):
            if ids not in [[end] for end in self._stop] and _ends_with(tokens, ids[:-1]):
                _ban(scores, ids[-1:])
        if len(tokens) < settings.get("min_length", 0) or len(generated) < settings.get("min_new_tokens", 0):
            _ban(scores, self._stop)
        self._force(scores, len(tokens), len(generated))
        if settings.get("remove_invalid_values", False):
            largest = float(np.finfo(np.float32).max)
            scores[:] = np.nan_to_num(scores, nan=0.0, posinf=largest, neginf=-largest)
        self._decay(scores, len(generated))
        _ban(scores, settings.get("suppress_tokens", []))
        if len(tokens) == self._begin_of(first):
            _ban(scores, settings.get("begin_suppress_tokens", []))

    def _force(self, scores: Floats, length: int, generated: int) -> None:
        """Leave a token alone at the beginning, and at the last place."""
        bos, eos = (self._settings.fields.get(f"forced_{name}_token_id") for name in ("bos", "eos"))
        if bos is not None and length == 1:
            _keep_only(scores, [bos])
        if eos is not None and generated == self._most - 1:
            _keep_only(scores, eos if isinstance(eos, list) else [eos])

    def _decay(self, scores: Floats, generated: int) -> None:
        """Favour the end, the more the longer."""
        start, factor = self._settings.get("exponential_decay_length_penalty", (0, 1.0))
        ends = _within(scores, self._stop)
        if generated > start and factor != 1:
            size = np.where(np.isfinite(scores[ends]), np.abs(scores[ends]), 0)
            scores[ends] += size * np.float32(factor ** (generated - start) - 1)

    def _begin_of(self, first: Sequence[int]) -> int:
        """The length of a row at the first token that no rule forces."""
        forced = len(first) == 1 and self._settings.fields.get("forced_bos_token_id") is not None
        return len(first) + (len(self._begin) or int(forced))


def _within(scores: Floats, ids: Iterable[int]) -> list[int]:
    """The ids that a vocabulary has, each once."""
    return sorted({id for id in ids if 0 <= id < len(scores)})


def _ban(scores: Floats, ids: Iterable[int]) -> None:
    scores[_within(scores, ids)] = -np.inf


def _keep_only(scores: Floats, ids: Iterable[int]) -> None:
    kept = _within(scores, ids)
    values = scores[kept]
    scores[:] = -np.inf
    scores[kept] = np.where(np.isfinite(values), values, 0)


def _add(scores: Floats, ids: Iterable[int], bias: float) -> None:
    scores[_within(scores, ids)] += np.float32(bias)


def _divide(scores: Floats, ids: Iterable[int], penalty: float) -> None:
    """Divide positive scores and multiply the others."""
    if penalty != 1.0:
        kept = _within(scores, ids)
        values = scores[kept]
        scores[kept] = np.where(values < 0, values * np.float32(penalty), values / np.float32(penalty))


def _ends_with(tokens: Sequence[int], ids: Sequence[int]) -> bool:
    return not ids or list(tokens[-len(ids) :]) == list(ids)


def _followers(seen: Sequence[int], tokens: Sequence[int], size: int) -> list[int]:
    """The tokens that completed a sequence of ``size`` tokens among those seen, of which ``tokens`` have the beginning."""
    if size == 0 or len(tokens) + 1 < size:
        return []
    last = list(tokens[len(tokens) + 1 - size :])
    places = range(len(seen) - size + 1)
    return [seen[start + size - 1] for start in places if list(seen[start : start + size - 1]) == last]
