"""The fields of configs: one class per type of value, and classes for values that depend on several fields."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from specs.base.base import Component
from specs.base.suggest import suggestion
from specs.kinds.activation import ACTIVATIONS as ACTIVATIONS
from specs.kinds.attention import ProjectionBiases
from zoo.families.common.config import Config
from zoo.families.common.template import Data, Field, FieldContext, Template, UnfitError, joined, read, write

# ---------------------------------------------------------------------------------------------------------- one field


class _NamedField(Field):
    """A field, by its present name and the other names that configs have used.

    The present name is written, or the names in ``written``.  ``default`` is the value where a config does not state the
    field; it may be a template.  With ``null``, null is a value of the field; otherwise it means absent.
    """

    _read: ClassVar[Callable[..., Any]]

    def __init__(
        self, *names: str, default: Template = None, null: bool = False, written: tuple[str, ...] = ()
    ) -> None:
        self.names, self.default, self.null, self.written = names, default, null, written or names[:1]

    def read(self, config: Config) -> Any:
        null = self.null and config.null(self.names[0])
        return type(self)._read(config, *self.names, default=None if null else read(self.default, config))

    def write(self, value: Any, context: FieldContext) -> Data:
        if isinstance(value, str):
            raise UnfitError(f"{context.key} {value}")
        return {} if value is None and not self.null else dict.fromkeys(self.written, value)


class Int(_NamedField):
    """A whole number."""

    _read = Config.int


class Depth(_NamedField):
    """A number of layers."""

    _read = Config.layers


class Float(_NamedField):
    """A number."""

    _read = Config.float


class Factor(Float):
    """A factor, which a spec does not state if it is 1."""

    def __init__(self, name: str, default: float = 1.0) -> None:
        super().__init__(name, default=default)

    def read(self, config: Config) -> float | None:
        factor: float = super().read(config)
        return None if factor == 1.0 else factor

    def write(self, value: float | None, context: FieldContext) -> Data:
        return super().write(1.0 if value is None else value, context)


class Bool(_NamedField):
    """True or false."""

    _read = Config.bool


class Bias(_NamedField):
    """Whether all projections of an attention add a bias."""

    _read = Config.bool

    def write(self, value: ProjectionBiases, context: FieldContext) -> Data:
        return super().write(value.query, context)


class HeadWidth(Int):
    """The width of a head, which a spec may omit where it follows from the model's width."""

    def write(self, value: int | None, context: FieldContext) -> Data:
        return super().write(value or context.head_width(), context)


class TableWidth(Int):
    """The width of the token table; none where it equals ``d_model``."""

    def __init__(self, *names: str, default: Template, d_model: Field | None = None) -> None:
        super().__init__(*names, default=default)
        self.d_model = d_model

    def read(self, config: Config) -> int | None:
        width: int = super().read(config)
        return None if self.d_model is not None and width == self.d_model.read(config) else width

    def write(self, value: int | None, context: FieldContext) -> Data:
        return super().write(context.model.embedding_width, context)


class ContextLength(_NamedField):
    """The context length; ``unlimited`` is written for a model without one."""

    _read = Config.int

    def __init__(self, *names: str, default: Template = None, unlimited: int = 2048) -> None:
        super().__init__(*names, default=default)
        self.unlimited = unlimited

    def write(self, value: Any, context: FieldContext) -> Data:
        return super().write(value or self.unlimited, context)


class Rows(_NamedField):
    """The rows of a table of learned positions: the context length plus the offset of the first position, ``start``."""

    _read = Config.int

    def __init__(self, *names: str, default: Template = None, start: Template = 0) -> None:
        super().__init__(*names, default=default)
        self.start = start

    def read(self, config: Config) -> int:
        rows, start = int(super().read(config)), int(read(self.start, config))
        if start and rows <= start:
            config.refuse(self.names[0], f"must exceed {start}, where positions start")
        return rows - start

    def write(self, value: Any, context: FieldContext) -> Data:
        embedded = context.model.position_of(context.stack)
        return super().write((value or 0) + getattr(embedded, "offset", 0), context)


class Positive(Int):
    """A whole number of at least 1."""

    def read(self, config: Config) -> int:
        number: int = super().read(config)
        if number < 1:
            config.refuse(config.stated(*self.names), "must be at least 1")
        return number


class EqualInLayers(Int):
    """A whole number that a config may list layer by layer, the same for all."""

    def read(self, config: Config) -> int:
        numbers = config.any(*self.names)
        if not isinstance(numbers, list):
            return int(super().read(config))
        if any(type(number) is not int or number != numbers[0] for number in numbers) or not numbers:
            rule = "must be one whole number, or the same one for every layer"
            config.refuse(config.stated(*self.names), rule)
        return int(numbers[0])


class Choice(Field):
    """A field whose words stand for values of a spec; words may be booleans, and None for null.

    ``default`` is one of the words, or a template of one, which is read if the config does not state the field.  ``also`` are
    other names that configs have used.
    """

    def __init__(
        self, name: str, words: Mapping[Any, Any], default: Template, *, also: tuple[str, ...] = ()
    ) -> None:
        self.names, self.words, self.default = (name, *also), words, default

    def read(self, config: Config) -> Any:
        name, kinds = config.stated(*self.names), {type(word) for word in self.words if word is not None}
        word = config.any(*self.names)
        if word is None:
            null = None if None in self.words else False if kinds == {bool} else self.default
            word = read(null if config.null(name) else self.default, config)
        if word is None and None in self.words:
            return self.words[None]
        if type(word) not in kinds and len(kinds) == 1:
            config.refuse(name, "must be true or false" if bool in kinds else "must be a string")
        if type(word) not in kinds or word not in self.words:
            known = [known for known in self.words if isinstance(known, str)]
            config.refuse(name, "is not supported", suggestion(str(word), known))
        return self.words[word]

    def write(self, value: Any, context: FieldContext) -> Data:
        for word, meaning in self.words.items():
            if meaning == value:
                return {self.names[0]: word}
        raise UnfitError(f"{context.key} {value}")


class Activation(Choice):
    """The name of an activation.  Of several names the first is written, unless another is the default."""

    def __init__(self, name: str, default: Template, *, also: tuple[str, ...] = ()) -> None:
        first = {word: meaning for word, meaning in ACTIVATIONS.items() if word == default}
        super().__init__(name, {**first, **ACTIVATIONS}, default, also=also)


# ---------------------------------------------------------------------------------------------------------- conversions


class Checked(Field):
    """A field whose values keep a rule; ``valid`` tells whether one does."""

    def __init__(self, field: _NamedField, valid: Callable[[Any], bool], rule: str) -> None:
        self.field, self.valid, self.rule = field, valid, rule

    def read(self, config: Config) -> Any:
        value = self.field.read(config)
        if not self.valid(value):
            config.refuse(self.field.names[0], self.rule)
        return value

    def write(self, value: Any, context: FieldContext) -> Data:
        return self.field.write(value, context)


def _kept(value: Any, context: FieldContext) -> Any:
    """The value itself."""
    return value


class Computed(Field):
    """A value that is computed from a field, or a template, and from the rest of the config.

    ``value`` may refuse what a config states.  ``written`` is the inverse, from a value and its place in a model, and may raise
    :class:`UnfitError`; without one, the value itself is written.  ``component`` is as in :class:`Field`.
    """

    def __init__(
        self,
        field: Template,
        value: Callable[[Any, Config], Any],
        written: Callable[[Any, FieldContext], Any] = _kept,
        component: Any = (),
    ) -> None:
        self.field, self.value, self.written = field, value, written
        self.component = component  # type: ignore[misc]

    def read(self, config: Config) -> Any:
        return self.value(read(self.field, config), config)

    def write(self, value: Any, context: FieldContext) -> Data:
        return write(self.field, self.written(value, context), context)


class Mapped(Computed):
    """A value that is computed from a field alone."""

    def __init__(
        self, field: Field, value: Callable[[Any], Any], written: Callable[[Any], Any], component: Any = ()
    ) -> None:
        super().__init__(
            field, lambda number, config: value(number), lambda own, context: written(own), component
        )


class Multiple(Computed):
    """A width that is a whole multiple of the model's, which the config states as the ``ratio``; ``d_model`` is the field of the
    model's width.

    ``width`` is the width for the model's and a ratio, by default their product, and ``path`` the place of the value in a block.
    """

    def __init__(
        self,
        ratio: Int,
        d_model: Field,
        width: Callable[[int, int], int] = operator.mul,
        path: str = "feed_forward.hidden",
    ) -> None:
        def ratio_of(value: int, context: FieldContext) -> int:
            model = context.model.d_model
            near = 3 * value // (2 * model)  # of a gated feed-forward, two thirds of the ratio are left
            for candidate in (value // model, near, near + 1):
                if width(model, candidate) == value:
                    return candidate
            raise UnfitError(f"{path} {value}: it follows from a whole {ratio.names[0]} of the width {model}")

        super().__init__(ratio, lambda number, config: width(d_model.read(config), number), ratio_of)


class Inside(Field):
    """A field in a mapping of the config, such as ``attn_config``."""

    def __init__(self, name: str, field: Field) -> None:
        self.name, self.field = name, field
        self.names = tuple(f"{name}.{inner}" for inner in getattr(field, "names", ()))

    def read(self, config: Config) -> Any:
        return self.field.read(config.mapping(self.name))

    def write(self, value: Any, context: FieldContext) -> Data:
        return {self.name: self.field.write(value, context)}


def after_padding(default: int = 1) -> Mapped:
    """The offset of the first position, which follows the padding token's id, by ``default`` a family's."""

    def padding(offset: int) -> int:
        if not offset:
            raise UnfitError("position.offset 0: it is 1 after the padding token's id")
        return offset - 1

    return Mapped(Int("pad_token_id", default=default), lambda padding: padding + 1, padding)


class Equal(Field):
    """A value that several fields state; ``because`` is why they must agree."""

    def __init__(self, first: Field, *others: Field, because: str = "") -> None:
        self.fields, self.because = (first, *others), because

    def read(self, config: Config) -> Any:
        first, *others = self.fields
        value = first.read(config)
        for other in others:
            if other.read(config) != value:
                because = f": {self.because}" if self.because else ""
                rule = f"must equal {_name(first, config)}, which is {str(value).lower()}{because}"
                config.refuse(_name(other, config), rule)
        return value

    def write(self, value: Any, context: FieldContext) -> Data:
        data: Data = {}
        for field in self.fields:
            data = joined(data, field.write(value, context))
        return data


def _name(field: Field, config: Config) -> str:
    """The name under which a config states a field, or else its present name."""
    names: tuple[str, ...] = field.names  # type: ignore[attr-defined]
    return config.stated(*names)


# ------------------------------------------------------------------------------------------------------ several fields


class Derived(Field):
    """A value computed from other fields."""

    component = Component | None

    def __init__(self, value: Callable[[Config], Any]) -> None:
        self._value = value

    def read(self, config: Config) -> Any:
        return self._value(config)

    def write(self, value: Any, context: FieldContext) -> Data:
        return {}


def times(factor: int, field: Field) -> Derived:
    """A multiple of another field."""
    return Derived(lambda config: factor * field.read(config))


class Stated(Field):
    """Constant fields of every written config; a function gives the value for a model."""

    component = Component | None

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def read(self, config: Config) -> Data:
        return {}

    def write(self, value: Any, context: FieldContext) -> Data:
        return {name: own(context) if callable(own) else own for name, own in self.fields.items()}


class When(Field):
    """A part that is present when a switch is on; the config's family ignores the fields of the part where it is off."""

    component = Component | None

    def __init__(self, switch: Field, part: Template) -> None:
        self.switch, self.part = switch, part

    def read(self, config: Config) -> Any:
        return read(self.part, config) if self.switch.read(config) else None

    def write(self, value: Any, context: FieldContext) -> Data:
        return joined(self.switch.write(value is not None, context), write(self.part, value, context))


class NoneIfZero(Field):
    """A part of a spec that a number of 0, such as its width, removes."""

    component = Component | None

    def __init__(self, number: Int, part: Template) -> None:
        self.number, self.part = number, part

    def read(self, config: Config) -> Any:
        part = read(self.part, config)
        return part if self.number.read(config) else None

    def write(self, value: Any, context: FieldContext) -> Data:
        return self.number.write(0, context) if value is None else write(self.part, value, context)


class Kinds(Field):
    """One of several parts, chosen by a field: ``parts`` are the templates by its values.

    A part is written by the first template that has its constants, or else its kind, or else by the last one.  The config's family
    ignores the fields of the other templates.
    """

    component = Component | None

    def __init__(self, switch: Field, parts: Mapping[Any, Template]) -> None:
        self.switch, self.parts = switch, parts

    def read(self, config: Config) -> Any:
        return read(self.parts[self.switch.read(config)], config)

    def write(self, value: Any, context: FieldContext) -> Data:
        words = (
            word
            for alike in (_has_constants, _has_kind)
            for word in self.parts
            if alike(value, self.parts[word])
        )
        word = next(words, [*self.parts][-1])
        return joined(self.switch.write(word, context), write(self.parts[word], value, context))


def _has_constants(value: Any, template: Template) -> bool:
    """Whether a part has the constants of a template."""
    plain = {
        key: own
        for key, own in (template.items() if isinstance(template, Mapping) else ())
        if not isinstance(own, Field | Mapping)
    }
    return bool(plain) and all(getattr(value, key, None) == own for key, own in plain.items())


def _has_kind(value: Any, template: Template) -> bool:
    """Whether a part has the kind of a template."""
    return isinstance(template, Mapping) and getattr(value, "kind", None) == template.get("kind")


class IfThere(Field):
    """A mapping that is written only as far as the part has its fields: for fields that affect only training."""

    component = Component | None

    def __init__(self, template: Mapping[str, Any]) -> None:
        self.template = template

    def read(self, config: Config) -> Any:
        return read(self.template, config)

    def write(self, value: Any, context: FieldContext) -> Data:
        return write(
            {key: part for key, part in self.template.items() if hasattr(value, key)}, value, context
        )


def normal(name: str = "initializer_range", **more: Any) -> IfThere:
    """Weights drawn from a normal distribution."""
    return IfThere({"kind": "normal", "std": Float(name, default=0.02), **more})
