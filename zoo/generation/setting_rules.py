"""The values that the fields of a generation_config.json may have."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_ids(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, int) and not isinstance(item, bool) for item in value
    )


def _are_sequences(value: object) -> bool:
    return isinstance(value, list) and all(_are_ids(item) and item for item in value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _are_biases(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, list) and len(item) == 2 and _are_sequences(item[:1]) and _is_number(item[1])
        for item in value
    )


def _is_decay(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and _is_count(value[0]) and _is_number(value[1])


def _are_named(value: object) -> bool:
    return isinstance(value, dict) and all(map(_is_count, value.values()))


def _are_placed(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, list)
        and len(item) == 2
        and item[0] == position
        and (item[1] is None or _is_count(item[1]))
        for position, item in enumerate(value, 1)
    )


_Rule = tuple[Callable[[Any], bool], str]
_COUNT: _Rule = _is_count, "a whole number, 0 or more"
_IDS: _Rule = _are_ids, "a list of token ids"
_ID: _Rule = lambda value: _is_count(value) or _are_ids(value), "a token id, or a list of them"
_PENALTY: _Rule = lambda value: _is_number(value) and value > 0, "a number above 0"
OF_WHISPER: Mapping[str, _Rule] = {
    "forced_decoder_ids": (_are_placed, "a list of places, counted from 1, each with a token id"),
    "lang_to_id": (_are_named, "token ids by their names"),
    "no_timestamps_token_id": (_is_count, "a token id"),
    "task_to_id": (_are_named, "token ids by their names"),
}
"""The settings of Whisper's own that say how its texts begin."""

RULES: Mapping[str, _Rule] = {
    "bad_words_ids": (_are_sequences, "a list of lists of token ids"),
    "begin_suppress_tokens": _IDS,
    "decoder_start_token_id": (_is_count, "a token id"),
    "encoder_no_repeat_ngram_size": _COUNT,
    "encoder_repetition_penalty": _PENALTY,
    "eos_token_id": _ID,
    "exponential_decay_length_penalty": (_is_decay, "a start and a factor"),
    "forced_bos_token_id": (_is_count, "a token id"),
    "forced_eos_token_id": _ID,
    "min_length": _COUNT,
    "min_new_tokens": _COUNT,
    "no_repeat_ngram_size": _COUNT,
    "remove_invalid_values": (lambda value: isinstance(value, bool), "true or false"),
    "repetition_penalty": _PENALTY,
    "sequence_bias": (_are_biases, "a list of token ids with a number each"),
    "suppress_tokens": _IDS,
    "temperature": (lambda value: _is_number(value) and value >= 0, "a number, 0 or more"),
    "top_k": _COUNT,
    "top_p": (lambda value: _is_number(value) and 0 < value <= 1, "above 0 and at most 1"),
    "min_p": (lambda value: _is_number(value) and 0 <= value <= 1, "0 to 1"),
    **OF_WHISPER,
}
"""The check of each field that is read, and its wording in messages."""
