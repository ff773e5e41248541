"""The generation settings of a checkpoint: the fields of its generation_config.json, and which of them are applied."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from specs.base.errors import UserError
from zoo.generation.setting_rules import OF_WHISPER, RULES

GENERATION = "generation_config.json"

APPLIED = frozenset(
    [
        "bad_words_ids", "begin_suppress_tokens", "encoder_no_repeat_ngram_size", "encoder_repetition_penalty",
        "exponential_decay_length_penalty", "forced_bos_token_id", "forced_eos_token_id", "min_length",
        "min_new_tokens", "no_repeat_ngram_size", "remove_invalid_values", "repetition_penalty", "sequence_bias",
        "suppress_tokens",
    ]
)  # fmt: skip
"""The fields that :class:`zoo.generation.score_rules.ScoreRules` applies to the scores of every step."""

OPTIONS = frozenset(
    [
        "bos_token_id", "decoder_start_token_id", "do_sample", "eos_token_id", "max_length", "max_new_tokens",
        "min_p", "temperature", "top_k", "top_p",
    ]
)  # fmt: skip
"""The fields that give options of generation their defaults, or that options state instead."""

NOT_APPLIED: Mapping[str, Any] = {
    "constraints": None,
    "dola_layers": None,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
    "force_words_ids": None,
    "guidance_scale": 1.0,
    "max_time": None,
    "num_beams": 1,
    "num_return_sequences": 1,
    "penalty_alpha": 0.0,
    "stop_strings": None,
    "token_healing": False,
    "top_h": None,
    "typical_p": 1.0,
    "watermarking_config": None,
}
"""The fields that change the generated tokens and are not applied, with the value that changes nothing: they are reported."""

_SAMPLING = ("epsilon_cutoff", "eta_cutoff", "top_h", "typical_p")
_NEUTRAL: tuple[Any, ...] = (None, 0, 1, False, [])
"""Values that change nothing, whichever of the applied fields has them."""

_FORCED = ("forced_bos_token_id", "forced_eos_token_id")
_TOKENS = ("bos_token_id", "decoder_start_token_id", "eos_token_id", "pad_token_id")
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class GenerationSettings:
    """The stated fields, and the file that messages name.

    Raises :class:`specs.base.errors.UserError`, naming file and field, where a value that is applied is wrong.
    """

    fields: Mapping[str, Any]
    where: str = GENERATION

    def __post_init__(self) -> None:
        for name, (good, rule) in RULES.items():
            value = self.fields.get(name)
            if value is not None and not good(value):
                raise UserError(
                    f"{self.where}: {name} must be {rule}\n  value: {value!r}\n  Correct the field, or remove it."
                )

    @classmethod
    def of(
        cls, settings: Mapping[str, Any], config: Mapping[str, Any], directory: Path
    ) -> GenerationSettings:
        """The settings in a generation_config.json, or without any those in a config.json, as transformers reads them.

        Token ids that the first leaves out are those of the second.
        """
        if not settings:
            return cls(_known(config), str(directory / "config.json"))
        tokens = {name: config[name] for name in (*_TOKENS, "forced_decoder_ids") if name in config}
        return cls({**tokens, **settings}, str(directory / GENERATION))

    def get(self, name: str, default: _Value) -> _Value:
        """A field of the type of its default, which stands for null too."""
        value: _Value | None = self.fields.get(name)
        return default if value is None else value

    @property
    def start(self) -> int:
        """The first token of an encoder-decoder's decoder: the start token, else the token that begins texts (T5Gemma), else 0."""
        return start_token(self.fields)

    @property
    def ends(self) -> list[int]:
        """The tokens that end a sequence."""
        return _listed(self.fields.get("eos_token_id"))

    def not_applied(self, *, sampling: bool) -> list[str]:
        """The stated fields that change what transformers generates and are not applied, each with its value."""
        options = [
            f"{name}: {self.fields[name]!r}"
            for name, neutral in NOT_APPLIED.items()
            if self.fields.get(name) not in (None, neutral) and (sampling or name not in _SAMPLING)
        ]
        return [
            *options,
            *(["return_timestamps: true"] if self.fields.get("return_timestamps") is True else []),
        ]

    @property
    def samples(self) -> bool:
        """Whether transformers samples by default."""
        return self.fields.get("do_sample") is True

    @property
    def sampling(self) -> dict[str, Any]:
        """The options of sampling that are stated."""
        names = ("temperature", "top_k", "top_p", "min_p")
        return {name: self.fields[name] for name in names if self.fields.get(name) is not None}

    def first_tokens(self) -> list[frozenset[int]]:
        """The tokens among which each of the first ones is chosen: Whisper's language, task and lack of timestamps."""
        if "no_timestamps_token_id" not in self.fields:
            return []
        languages, tasks = (self.get(name, dict[str, int]()) for name in ("lang_to_id", "task_to_id"))
        language, task = self.fields.get("language"), self.fields.get("task")
        first: list[frozenset[int] | None] = []
        if task is None and language is None:
            first = [
                None if token is None else frozenset({token})
                for _, token in self.get("forced_decoder_ids", list[Any]())
            ]
        if (language_token := language_id(language, languages)) is not None:
            first[:1] = [frozenset({language_token})]
        elif languages and (not first or first[0] is None):
            first[:1] = [frozenset(languages.values())]
        if tasks and (task is not None or language is not None):
            first.append(frozenset({tasks[task or "transcribe"]}))
        end = frozenset({self.fields["no_timestamps_token_id"]})
        if not self.fields.get("return_timestamps") and first[-1:] != [end]:
            first.append(end)
        return [ids for ids in first if ids is not None]


def generation_fields(config: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a config that say how to generate, as early checkpoints have them; none where they change nothing."""
    changes = any(config.get(name) not in (_NEUTRAL if name not in _FORCED else (None,)) for name in APPLIED)
    return _known(config) if changes else {}


def _known(config: Mapping[str, Any]) -> dict[str, Any]:
    known = APPLIED | OPTIONS | {*NOT_APPLIED, *OF_WHISPER, *_TOKENS}
    return {name: value for name, value in config.items() if name in known and value is not None}


NO_SETTINGS = GenerationSettings({})
"""Those of a checkpoint that says nothing."""


def language_id(language: object, languages: Mapping[str, int]) -> int | None:
    """The token of a language that Whisper's settings state, by its code or its token; None for another."""
    return languages.get(f"<|{language}|>", languages.get(str(language)))


def start_token(fields: Mapping[str, Any]) -> int:
    """The token that fields of a checkpoint let the decoder of an encoder-decoder begin with, as transformers chooses it."""
    tokens = (fields.get(name) for name in ("decoder_start_token_id", "bos_token_id"))
    return next((token for token in tokens if type(token) is int), 0)


def _listed(value: Any) -> list[int]:
    return [] if value is None else list(value) if isinstance(value, list) else [value]


def stops(stop: Collection[int] | None, settings: GenerationSettings) -> Collection[int]:
    """The tokens that end a sequence: those given, or the checkpoint's."""
    return settings.ends if stop is None else stop
