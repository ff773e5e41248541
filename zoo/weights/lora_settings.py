"""The settings of a LoRA adapter of PEFT, ``adapter_config.json``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from specs.base.errors import shorten
from zoo.weights.source import WeightError

_UNCHANGED = (None, True, False, "gaussian", "orthogonal", "eva")
"""The initializations that leave the base model's weights as they are."""

_REFUSED: Mapping[str, str] = {
    "alora_invocation_tokens": "acts from certain tokens on",
    "arrow_config": "chooses among adapters by the input",
    "kasa_config": "removes directions of the base model's matrices",
    "layer_replication": "repeats layers of the base model",
    "lora_bias": "adds to biases that the base model may lack",
    "monteclora_config": "draws several changes",
    "trainable_token_indices": "replaces rows of the token table",
    "use_bdlora": "splits its matrices into blocks",
    "use_qalora": "averages its inputs in groups",
}
"""Fields that must be false or absent, each with what it would do."""


def check_settings(path: Path, settings: Mapping[str, Any]) -> None:
    """Raise :class:`WeightError` for settings of other kinds of adapters, and for values of another type."""
    kind = settings.get("peft_type")
    if kind != "LORA":
        raise WeightError(
            f"{path}: peft_type must be LORA to be merged\n  value: {shorten(kind)}\n  Merge it with PEFT."
        )
    for name, what in _REFUSED.items():
        if settings.get(name):
            raise WeightError(
                f"{path}: {name} is not supported, as it {what}\n  value: {shorten(settings[name])}\n  Merge it with PEFT."
            )
    start = settings.get("init_lora_weights")
    if start not in _UNCHANGED:
        raise WeightError(
            f"{path}: init_lora_weights {shorten(start)} is not supported, as it changes the base model's weights\n"
            "  Convert the adapter with path_initial_model_for_weight_conversion of PEFT's save_pretrained, or merge it with PEFT."
        )
    for name, patterns, check in (
        ("r", "rank_pattern", _check_rank),
        ("lora_alpha", "alpha_pattern", _check_number),
    ):
        check(path, name, settings.get(name, 8))
        _check_pattern(path, patterns, settings.get(patterns) or {}, check)
    targets = settings.get("target_parameters") or []
    if not isinstance(targets, list) or not all(isinstance(target, str) and target for target in targets):
        raise WeightError(
            f"{path}: target_parameters must be a list of names\n  value: {shorten(targets)}\n  Correct the field."
        )


def _check_pattern(
    path: Path, field: str, patterns: object, check: Callable[[Path, str, object], None]
) -> None:
    if not isinstance(patterns, dict):
        raise WeightError(
            f"{path}: {field} must be an object\n  value: {shorten(patterns)}\n  Correct the field."
        )
    for pattern, value in patterns.items():
        try:
            re.compile(pattern)
        except re.error as error:
            raise WeightError(
                f"{path}: {field} must have regular expressions: {error}\n  value: {shorten(pattern)}\n  Correct the field."
            ) from None
        check(path, f"{field}.{pattern}", value)


def _check_number(path: Path, name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise WeightError(
            f"{path}: {name} must be a number above 0\n  value: {shorten(value)}\n  Correct the field."
        )


def _check_rank(path: Path, name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise WeightError(
            f"{path}: {name} must be a whole number above 0\n  value: {shorten(value)}\n  Correct the field."
        )


def scale_of(name: str, rank: int, settings: Mapping[str, Any]) -> float:
    """The factor of the change of a module or parameter, of a rank."""
    alpha: float = _by_pattern(name, settings.get("alpha_pattern"), settings.get("lora_alpha", 8))
    return alpha / (math.sqrt(rank) if settings.get("use_rslora") else rank)


def rank_of(name: str, settings: Mapping[str, Any]) -> int:
    """The rank of the change of a parameter."""
    rank: int = _by_pattern(name, settings.get("rank_pattern"), settings.get("r", 8))
    return rank


def _by_pattern(name: str, patterns: Mapping[str, Any] | None, default: Any) -> Any:
    own = (value for key, value in (patterns or {}).items() if re.match(rf"(.*\.)?({key})$", name))
    return next(own, default)


def stacked_leaves(module: str, settings: Mapping[str, Any]) -> list[str]:
    """The parameters of a module that an adapter changes, without its weight."""
    targets = settings.get("target_parameters") or []
    leaves = dict.fromkeys(target.rpartition(".")[2] for target in targets)
    ends = tuple(f".{target}" for target in targets)
    return [leaf for leaf in leaves if leaf != "weight" and f".{module}.{leaf}".endswith(ends)]
