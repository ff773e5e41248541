"""The fields of configs: one class per type of value, and classes for values that depend on several fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from specs.base.base import Component
from specs.kinds.activation import Activation as Name
from specs.kinds.attention import ProjectionBiases
from zoo.families.common.config import Config
from zoo.families.common.template import Data, Field, FieldContext, Template, UnfitError, read, write

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


class Choice(Field):
    """A field whose words stand for values of a spec; words may be booleans. ``default`` is one of the words."""

    def __init__(self, name: str, words: Mapping[Any, Any], default: Any) -> None:
        self.name, self.words, self.default = name, words, default

    def read(self, config: Config) -> Any:
        if isinstance(self.default, bool):
            return self.words[config.bool(self.name, default=self.default)]
        return config.choice(self.name, self.words, self.default)

    def write(self, value: Any, context: FieldContext) -> Data:
        for word, meaning in self.words.items():
            if meaning == value:
                return {self.name: word}
        raise UnfitError(f"{context.key} {value}")


ACTIVATIONS: dict[str, Name] = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_python": "gelu",
    "relu": "relu",
    "relu2": "relu2",
    "silu": "silu",
    "swish": "silu",
    "quick_gelu": "quick_gelu",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "linear": "identity",
}
"""The names of activations in configs (``transformers.activations``), and ours.  The first of several is written, unless another is the default."""


class Activation(Choice):
    """The name of an activation.  The default is written where several names mean the same."""

    def __init__(self, name: str, default: str) -> None:
        first = {word: meaning for word, meaning in ACTIVATIONS.items() if word == default}
        super().__init__(name, {**first, **ACTIVATIONS}, default)


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


class Mapped(Field):
    """A value that is computed from another field; ``written`` is the inverse, which may raise :class:`UnfitError`."""

    def __init__(
        self, field: Field, value: Callable[[Any], Any], written: Callable[[Any], Any], component: Any = ()
    ) -> None:
        self.field, self.value, self.written = field, value, written
        self.component = component  # type: ignore[misc]

    def read(self, config: Config) -> Any:
        return self.value(self.field.read(config))

    def write(self, value: Any, context: FieldContext) -> Data:
        return self.field.write(self.written(value), context)


def after_padding(default: int = 1) -> Mapped:
    """The offset of the first position, which follows the padding token's id, by ``default`` a family's."""

    def padding(offset: int) -> int:
        if not offset:
            raise UnfitError("position.offset 0: it is 1 after the padding token's id")
        return offset - 1

    return Mapped(Int("pad_token_id", default=default), lambda padding: padding + 1, padding)


class Equal(Field):
    """A value that two fields state."""

    def __init__(self, first: _NamedField, second: _NamedField) -> None:
        self.first, self.second = first, second

    def read(self, config: Config) -> Any:
        value = self.first.read(config)
        if self.second.read(config) != value:
            rule = f"must equal {self.first.names[0]}, which is {str(value).lower()}"
            config.refuse(self.second.names[0], rule)
        return value

    def write(self, value: Any, context: FieldContext) -> Data:
        return {**self.first.write(value, context), **self.second.write(value, context)}


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
    """Constant fields of every written config."""

    component = Component | None

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def read(self, config: Config) -> Data:
        return {}

    def write(self, value: Any, context: FieldContext) -> Data:
        return self.fields


class When(Field):
    """A part that is present when a switch is on."""

    component = Component | None

    def __init__(self, switch: Bool, part: Template) -> None:
        self.switch, self.part = switch, part

    def read(self, config: Config) -> Any:
        return read(self.part, config) if self.switch.read(config) else None

    def write(self, value: Any, context: FieldContext) -> Data:
        return {**self.switch.write(value is not None, context), **write(self.part, value, context)}


class Kinds(Field):
    """The kind of a part, chosen by a switch: ``on`` and ``off`` are the templates."""

    component = Component | None

    def __init__(self, switch: Bool | Choice, on: Template, off: Template) -> None:
        self.switch, self.on, self.off = switch, on, off

    def read(self, config: Config) -> Any:
        return read(self.on if self.switch.read(config) else self.off, config)

    def write(self, value: Any, context: FieldContext) -> Data:
        on = value is not None and value.kind == self.on["kind"]
        return {**self.switch.write(on, context), **write(self.on if on else self.off, value, context)}


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
