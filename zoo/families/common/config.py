"""A config.json, read field by field; fields that nothing reads are refused in the end, never ignored."""

from __future__ import annotations

import builtins
import itertools
import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from specs.base.errors import UserError, shorten
from specs.base.suggest import suggestion
from specs.language.scalars import is_huge, resolve
from specs.model.stack import MAX_LAYERS
from zoo.families.common.inexpressible import INEXPRESSIBLE
from zoo.families.common.reference_fields import reference_has
from zoo.files.json_values import read_object

Value = TypeVar("Value")

CONFIG = "config.json"
REQUIRED: Any = object()
"""The default of a required field."""

NEUTRAL = frozenset(
    [
        "_attn_implementation", "_attn_implementation_autoset", "_commit_hash", "_name_or_path", "_num_labels",
        "architectures", "attn_implementation", "auto_map", "bad_words_ids", "begin_suppress_tokens",
        "bos_token_id", "chunk_size_feed_forward", "cls_token_id", "decoder_start_token_id", "diversity_penalty",
        "do_sample", "dtype", "early_stopping", "encoder_no_repeat_ngram_size", "eos_token_id",
        "exponential_decay_length_penalty", "finetuning_task", "forced_bos_token_id", "forced_eos_token_id",
        "gradient_checkpointing", "id2label", "initializer_range", "is_encoder_decoder",
        "keys_to_ignore_at_inference", "label2id", "length_penalty", "mask_token_id", "max_length", "min_length",
        "model_type", "name_or_path", "no_repeat_ngram_size", "num_beam_groups", "num_beams", "num_labels",
        "num_return_sequences", "output_attentions", "output_hidden_states", "output_past", "output_scores",
        "pad_token_id", "prefix", "pretraining_tp", "problem_type", "remove_invalid_values", "repetition_penalty",
        "return_dict", "return_dict_in_generate", "sbert_ce_default_activation_function", "sentence_transformers",
        "sep_token_id", "suppress_tokens", "task_specific_params", "temperature", "tf_legacy_loss",
        "tie_encoder_decoder", "tie_word_embeddings", "tokenizer_class", "top_k", "top_p", "torch_dtype",
        "torchscript", "transformers_version", "typical_p", "unk_token_id", "use_bfloat16", "use_cache",
        "xla_device",
    ]
)  # fmt: skip
"""Fields of every family that do not affect the forward pass, or that the head reads."""


OF_EVERY_CONFIG: Mapping[str, Any] = {
    "pruned_heads": {},
    "add_cross_attention": False,
    "is_decoder": False,
    "dropout": 0.0,
}
"""Fields that transformers 4 wrote into every config, with the values that state nothing."""


class ConfigError(UserError):
    """A config of an unknown family, or with a wrong or unsupported field; names the field."""


_LISTED = 10


class UnsupportedFieldsError(ConfigError):
    """Fields of the reference that are not supported; ``fields`` are their names."""

    def __init__(self, where: str, fields: Mapping[str, Any]) -> None:
        shown = [
            f"  {_name(name)}: {shorten(value)}" for name, value in itertools.islice(fields.items(), _LISTED)
        ]
        if len(fields) > _LISTED:
            shown.append(f"  ... and {len(fields) - _LISTED:,} more")
        super().__init__("\n".join([f"{where} has unsupported fields:", *shown]))
        self.fields = tuple(fields)


def listed(fields: Sequence[str]) -> str:
    """Return the first few fields as text, and the number of further ones."""
    more = f" and {len(fields) - _LISTED:,} more" if len(fields) > _LISTED else ""
    return ", ".join(map(_name, fields[:_LISTED])) + more


def _name(field: str) -> str:
    """Return the name of a field, quoted and shortened where it is not printable or too long."""
    return field if field.isprintable() and len(field) <= 80 else shorten(field)


def _as_typed(value: object, types: tuple[type, ...], default: object) -> str:
    """Return the remedy for a value of another type than the field's."""
    plain = resolve(value) if isinstance(value, str) and not is_huge(value) else None
    if type(plain) in types and isinstance(plain, int | float) and abs(plain) < 2**63:
        return f"Write it without quotes: {json.dumps(plain)}."
    if int in types and isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return f"Use {int(value)}."
    return (
        "Correct the field." if default is REQUIRED else "Correct the field, or delete it to use its default."
    )


class Config:
    """The fields of a config, or of a mapping inside one.

    Every requested field counts as read; ``finish`` refuses the others. Except in :meth:`null` and :meth:`bool`, null means
    absent. A method with several names reads a field that has been renamed. All methods raise :class:`ConfigError`.
    """

    def __init__(
        self,
        data: Mapping[str, Any],
        where: str,
        path: str = "",
        tensors: Callable[[], Collection[str]] = tuple,
        neutral: Collection[str] = NEUTRAL,
    ) -> None:
        self.data, self.where, self.path = data, where, path
        self._read: set[str] = set()
        self._names: set[tuple[str, ...]] = set()
        self._tensors = tensors
        self._neutral = neutral
        self._models: list[Config] = []
        self._mappings: dict[str, Config] = {}
        self._inner: dict[str, Config] = {}
        self._unread: set[str] = set()
        self._outer: Config | None = None
        self.ignored: Collection[str] = ()
        self.strict = False

    @classmethod
    def load(
        cls,
        path: Path,
        tensors: Callable[[], Collection[str]] = tuple,
        within: Path | None = None,
    ) -> Config:
        """Return the config in a file, which must lie in the directory ``within`` where that is given.

        ``tensors`` gives the names of the tensors in its directory.
        """
        data = read_object(path, ConfigError, within)
        return cls(data, str(path), tensors=tensors)

    def refuse(self, field: str, rule: str, remedy: str = "") -> NoReturn:
        """Raise an error with the field, the rule, the value and the remedy."""
        value = f"\n  value: {shorten(self.data[field])}" if field in self.data else ""
        raise ConfigError(
            f"{self.where}: {self.path}{_name(field)}: {rule}{value}" + (f"\n  {remedy}" if remedy else "")
        )

    def refuse_entries(self, field: str, layers: builtins.int) -> NoReturn:
        """Raise an error for a list that must have an entry for each layer."""
        self.refuse(
            field,
            f"must have an entry for each of the {layers} layers",
            "Add or delete entries, or correct the number of layers.",
        )

    def refuse_inexpressible(self) -> None:
        """Refuse a family that is known, and that no spec can express."""
        because = INEXPRESSIBLE.get(str(self.any("model_type")))
        if because is not None:
            rule = f"is not supported: specs cannot express {because}"
            self.refuse("model_type", rule, "Export it with the tools of its authors.")

    def tensor_names(self) -> Collection[str]:
        """Return the names of the tensors beside the config, none where there are no weights."""
        return self._tensors()

    def stores(self, tensor: str) -> bool:
        """Return whether the config's checkpoint is present and has a tensor: some configs do not say what they tie."""
        return tensor in self._tensors()

    def lacks(self, ending: str) -> bool:
        """Return whether the config's checkpoint is present and has no tensor whose name has this ending."""
        tensors = self._tensors()
        return bool(tensors) and not any(name.endswith(ending) for name in tensors)

    def has(self, name: str) -> bool:
        """Return whether a field is present and not null."""
        return self.data.get(name) is not None

    def null(self, name: str) -> bool:
        """Return whether a field is present and null, where that differs from an absent field."""
        return name in self.data and self.data[name] is None

    def stated(self, *names: str) -> str:
        """Return the name of a field, of several names, that the config states, or else the first."""
        return next((name for name in names if self.has(name)), names[0])

    def any(self, *names: str) -> Any:
        """Return the value of a field unchecked, or None; refuse names of one field that state different values."""
        self._read.update(names)
        self._names.add(names)
        aliases = [name for name in names if self.has(name)]
        for other in aliases[1:]:
            if self.data[other] != self.data[aliases[0]]:
                rule = f"must equal {aliases[0]}, another name of the field, which is {shorten(self.data[aliases[0]])}"
                self.refuse(other, rule, "Delete the name whose value is wrong.")
        return self.data[aliases[0]] if aliases else None

    def _typed(
        self, names: tuple[str, ...], types: tuple[type, ...], what: str, default: Value
    ) -> Any | Value:
        value = self.any(*names)
        if value is None:
            if default is REQUIRED:
                self.refuse(names[0], "is required")
            return default
        rule = "" if type(value) in types else f"must be {what}"
        if isinstance(value, float) and not math.isfinite(value):
            rule = f"must be {what}"
        elif isinstance(value, int) and abs(value) >= 2**63:
            rule = "must fit in 64 bits"
        if rule:
            self.refuse(self.stated(*names), rule, _as_typed(value, types, default))
        return value

    def int(self, *names: str, default: Any = None) -> Any:
        """Return a whole number."""
        return self._typed(names, (int,), "a whole number", default)

    def layers(self, *names: str, default: Any = None) -> Any:
        """Return a number of layers, which is limited before anything is allocated per layer."""
        value = self.int(*names, default=default)
        if value is not None and not 0 <= value <= MAX_LAYERS:
            rule = "must be 1 or more" if value < 0 else f"must be at most {MAX_LAYERS:,}"
            self.refuse(self.stated(*names), rule)
        return value

    def float(self, *names: str, default: Any = None) -> Any:
        """Return a number."""
        value = self._typed(names, (int, float), "a number", default)
        return value if value is None else float(value)

    def bool(self, *names: str, default: Any = None, null: builtins.bool = False) -> Any:
        """Return a boolean. A stated null is false, as Python reads it, or ``null`` in references that compare with false."""
        has_null = any(map(self.null, names))
        return self._typed(names, (bool,), "true or false", null if has_null else default)

    def text(self, *names: str, default: Any = None) -> Any:
        """Return a string."""
        return self._typed(names, (str,), "a string", default)

    def list(self, *names: str, default: Any = None) -> Any:
        """Return a list."""
        return self._typed(names, (list,), "a list", default)

    def part(self, *names: str) -> Config | None:
        """Return a mapping inside the config, to be read and finished like the config itself."""
        value = self._typed(names, (dict,), "a mapping", None)
        if value is None:
            return None
        return self._inside(self.stated(*names), value, neutral=())

    def mapping(self, name: str) -> Config:
        """Return a mapping inside the config, empty if there is none, always the same one, to be finished with the config."""
        if name not in self._mappings:
            self._mappings[name] = self._inside(name, self._typed((name,), (dict,), "a mapping", {}), NEUTRAL)
        return self._mappings[name]

    def _inside(self, name: str, data: Mapping[str, Any], neutral: Collection[str]) -> Config:
        inner = Config(data, self.where, f"{self.path}{name}.", neutral=neutral)
        inner.ignored, inner.strict = self.ignored, self.strict
        self._inner[name] = inner
        return inner

    def of(self, data: Mapping[str, Any]) -> Config:
        """Return other fields in the place of these."""
        other = Config(data, self.where, self.path, neutral=self._neutral)
        other.ignored, other.strict = self.ignored, self.strict
        return other

    def with_field(self, path: Sequence[Any], value: object) -> Config:
        """Return the config, to be read anew, with another value of a field, or of one in its mappings."""
        data = inner = dict(self.data)
        for name in path[:-1]:
            inner[name] = inner = dict(inner.get(name, {}))
        inner[path[-1]] = value
        config = Config(data, self.where, self.path, self._tensors, self._neutral)
        config.ignored, config.strict = self.ignored, self.strict
        return config

    @property
    def absent(self) -> Collection[tuple[str, ...]]:
        """The paths of fields that were read, by their present names, and that the config does not state under any name."""
        own = {(names[0],) for names in self._names if not any(map(self.has, names))}
        return own | {(name, *path) for name, inner in self._inner.items() for path in inner.absent}

    def inner(self, name: str, without: Collection[str] = ()) -> Config:
        """Return the config of a model inside the config, empty if there is none, to be finished with it.

        Fields ``without`` are read here.
        """
        value: dict[str, Any] = self._typed((name,), (dict,), "a mapping", {})
        data = {key: inner for key, inner in value.items() if key not in without}
        model = self._inside(name, data, NEUTRAL)
        model._outer = self
        self._models.append(model)
        return model

    def model(self, name: str, known: Collection[str], without: Collection[str] = ()) -> Config:
        """Return the config of a model inside the config, of one of the ``known`` families, to be finished with it.

        Fields ``without`` are read here.
        """
        self._typed((name,), (dict,), "a mapping", REQUIRED)
        model = self.inner(name, without)
        family = model.text("model_type")
        if family not in known:
            model.refuse_inexpressible()
            rule = "is required" if family is None else "is not a supported family here"
            model.refuse("model_type", rule, suggestion(str(family), known))
        return model

    def choice(self, name: str, values: Mapping[str, Value], default: str | None = None) -> Value:
        """Return the value that a word stands for; refuse unknown words with a suggestion."""
        word = self.text(name, default=REQUIRED if default is None else default)
        if word not in values:
            self.refuse(name, "is not supported", suggestion(word, values))
        return values[word]

    def must(self, name: str, value: Any, because: str) -> None:
        """Refuse a field that is present with any other value; a stated null is false, and no name.

        A name with a dot is that of a field in a mapping.
        """
        outer, _, inner = name.rpartition(".")
        if outer:
            self.mapping(outer).must(inner, value, because)
            return
        current = self.any(name)
        named = value is True or isinstance(value, str)
        refused = current != value if current is not None else named and self.null(name)
        if refused:
            self.refuse(name, f"must be {json.dumps(value)}: {because}")

    def ignore(self, *names: str) -> None:
        """Mark fields that do not affect the model's outputs as read.  A name with a dot is that of a field in a mapping."""
        for name in names:
            outer, _, inner = name.rpartition(".")
            (self.mapping(outer) if outer else self)._read.add(inner)

    def pass_over(self, *names: str) -> None:
        """Report fields that other families' references read, and this family's does not."""
        self._unread.update(names)

    def finish(self) -> tuple[str, ...]:
        """Refuse unread fields that the reference may read; return the names of those that the reference does not have.

        The latter are refused as well where the config is ``strict``, and in mappings that are not of models.
        """
        unread = [name for model in self._models for name in model.finish()]
        left = self._left()
        of_model = not self.path or self._outer is not None
        passed = [name for name in left if of_model and not self.strict and not self._has_reference(name)]
        refused = {f"{self.path}{name}": value for name, value in left.items() if name not in passed}
        for mapping in self._mappings.values():
            refused |= mapping._left_inside()
        if refused:
            raise UnsupportedFieldsError(self.where, refused)
        return (*unread, *(f"{self.path}{name}" for name in passed))

    def _left(self) -> dict[str, Any]:
        """Return the unread fields."""
        return {name: value for name, value in self.data.items() if value is not None and self._counts(name)}

    def _left_inside(self) -> dict[str, Any]:
        """Return the unread fields of a mapping and of those inside it, by path."""
        left = {f"{self.path}{name}": value for name, value in self._left().items()}
        for mapping in self._mappings.values():
            left |= mapping._left_inside()
        return left

    def _counts(self, name: str) -> builtins.bool:
        """Return whether a field is unread and may state something."""
        nothing = name in OF_EVERY_CONFIG and self.data[name] == OF_EVERY_CONFIG[name]
        known = name in self._read or name in self._neutral or f"{self.path}{name}" in self.ignored
        return not (nothing or known)

    def _has_reference(self, name: str) -> builtins.bool:
        """Return whether the reference has a field for the family that the config names."""
        if name in self._unread:
            return False
        own = reference_has(str(self.data.get("model_type")), name)
        return own or (self._outer is not None and self._outer._has_reference(name))
