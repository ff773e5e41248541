"""A config.json, read field by field; fields that nothing reads are refused in the end, never ignored."""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from specs.base.suggest import suggestion
from zoo.families.common.config_errors import ConfigError, UnsupportedFieldsError
from zoo.families.common.inexpressible import INEXPRESSIBLE
from zoo.families.common.neutral_fields import NEUTRAL, OF_EVERY_CONFIG
from zoo.families.common.reference_fields import reference_has
from zoo.families.common.typed_fields import REQUIRED, TypedFields
from zoo.files.json_values import read_object

CONFIG = "config.json"


class Config(TypedFields):
    """The fields of a config, or of a mapping inside one.

    Every requested field counts as read; ``finish`` refuses the others. All methods raise
    :class:`zoo.families.common.config_errors.ConfigError`.
    """

    def __init__(
        self,
        data: Mapping[str, Any],
        where: str,
        path: str = "",
        tensors: Callable[[], Collection[str]] = tuple,
        neutral: Collection[str] = NEUTRAL,
    ) -> None:
        super().__init__(data, where, path)
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
