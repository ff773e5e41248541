"""Base classes of specs: strict frozen models, slots of kinds, and rules across fields."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, core_schema

from specs.base import registry
from specs.base.kind_synonyms import kind_meant, written
from specs.base.plugins import broken_plugins
from specs.base.roles import Role, changed_fields
from specs.base.suggest import misspelt, suggestion
from specs.base.words import PartContext, PartRole, plain_fields

Path = tuple[str | int, ...]

SLOT_KEY = "slot"
"""Placeholder for a slot in a generated JSON Schema, which :mod:`specs.files.schema` replaces with the slot's kinds."""

Width = Annotated[int, Field(gt=0, le=2**24)]
Dropout = Annotated[float, Field(ge=0, lt=1), Role.DROPOUT]
LEAST, MOST = 1e-30, 1e30
"""Bounds within which a number, its inverse and its product with any position are finite in float32."""


@dataclass(frozen=True)
class Fault:
    """A violated rule: path relative to the spec that reports it, rule, value and remedy."""

    path: Path
    rule: str
    value: Any
    remedy: str = ""

    def under(self, *prefix: str | int) -> "Fault":
        return Fault((*prefix, *self.path), self.rule, self.value, self.remedy)

    def line_error(self) -> InitErrorDetails:
        return InitErrorDetails(type=custom_error(self.rule, self.remedy), loc=self.path, input=self.value)


def custom_error(rule: str, remedy: str) -> PydanticCustomError:
    """A pydantic error that carries a rule and its remedy."""
    return PydanticCustomError("rule", "{rule}", {"rule": rule, "remedy": remedy})


def default_faults(
    part: "Spec", keys: Iterable[str], rule: str, remedy: str = "Remove it."
) -> Iterator[Fault]:
    """The violated rules of some fields of a part that must have their defaults."""
    for key, value in changed_fields(part, keys).items():
        shown = "a value" if isinstance(value, Spec) else value
        yield Fault((key,), rule, value.kind if isinstance(value, Component) else shown, remedy)


_UNKNOWN = "is not a known key"


def in_float32(value: float) -> float:
    """Validate that a value is finite and not 0 in float32.  Raises a pydantic error."""
    if not LEAST <= value <= MOST:
        nearest = LEAST if value < LEAST else MOST
        raise custom_error(
            f"must be from {LEAST:g} to {MOST:g}, because models compute in float32", f"Use {nearest:g}."
        )
    return value


PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False), AfterValidator(in_float32)]


class Spec(BaseModel):
    """A part of a spec: immutable, strictly typed, no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    @model_validator(mode="wrap")
    @classmethod
    def _teach_unknown_keys(cls, data: Any, handler: Any) -> Any:
        try:
            return handler(data)
        except ValidationError as error:
            if all(line["type"] != "extra_forbidden" for line in error.errors(include_url=False)):
                raise
            lines = [cls._taught(line) for line in error.errors(include_url=False)]
            raise ValidationError.from_exception_data(cls.__name__, lines) from None

    @classmethod
    def _taught(cls, line: Any) -> InitErrorDetails:
        loc: Path = line["loc"]
        if line["type"] == "extra_forbidden" and len(loc) == 1:
            context = {"known": list(cls.model_fields), "slot": registry.slot_of_class(cls)}
            kind = PydanticCustomError("unknown_key", _UNKNOWN, context)
        elif line["type"] == "unknown_key":
            kind = PydanticCustomError("unknown_key", _UNKNOWN, line["ctx"])
        elif line["type"] == "rule":
            kind = PydanticCustomError("rule", "{rule}", line["ctx"])
        else:
            kind = line["type"]
        return InitErrorDetails(type=kind, loc=loc, input=line["input"], ctx=line.get("ctx", {}))


@dataclass(frozen=True)
class RuleContext:
    """Properties of the model that the rules of a component depend on.

    ``vocab_size`` is set for stacks of tokens. ``patches`` says that the stack reads the patches of images, and ``packed`` that these
    may have any size. ``second_width`` is the width of a second stream that the embedding gives, ``queries`` the number of trained
    vectors that join others in the stack. ``position`` is the one that acts inside the attention: its own, or the stack's.
    """

    d_model: int
    context_length: int | None
    causal: bool
    cross: bool
    architecture: str
    vocab_size: int | None = None
    patches: bool = False
    packed: bool = False
    second_width: int | None = None
    queries: int = 0
    position: Any = None


class DescribedSpec(Spec):
    """A part of a spec that drawings and pages describe.

    ``title`` is its name there, and ``drawn_role`` decides the colour of its box.
    """

    title: ClassVar[str] = ""
    drawn_role: ClassVar[PartRole | None] = None

    @property
    def heading(self) -> str:
        """The title of this part in drawings."""
        return self.title

    def details(self, context: PartContext) -> list[str]:
        """The lines below the heading in drawings.  Default: the numbers and texts among the fields."""
        return plain_fields(self)

    @property
    def routed_experts(self) -> tuple[int, int] | None:
        """The numbers of experts that compute a token, and of all; None for parts without experts."""
        return None


@registry.interface(registry.EVERY_SLOT)
class Component(DescribedSpec):
    """A spec of one kind.  Subclasses set ``kind: Literal["name"] = "name"`` and register in a slot.

    Without a ``title`` of its own it is called by its kind.
    """

    kind: str

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        """The violated rules that involve several fields or the surrounding model."""
        return ()

    @property
    def is_none(self) -> bool:
        """Whether the kind is ``none``, which stands for the absence of the part."""
        return self.kind == "none"

    @classmethod
    def kind_title(cls) -> str:
        """The title of the kind, or its name as words."""
        return cls.title or str(cls.model_fields["kind"].default).replace("_", " ").capitalize()

    @property
    def heading(self) -> str:
        return self.kind_title()

    @property
    def brief(self) -> str:
        """The part in few words, for the details of the part around it."""
        return self.kind_title()

    def branch_details(self, context: PartContext) -> list[str]:
        """The details of this part as one of several side by side."""
        return [self.brief]

    def why_insensitive(self, width: int) -> str:
        """The reason why outputs of ``width`` need not depend on the input; empty if they must."""
        return ""


class OmitDefault:
    """Annotation of a field that a resolved spec omits if it has its default."""


Multiplier = Annotated[PositiveFloat, OmitDefault()]
"""A factor that a resolved spec omits if it is 1."""


def _most_alike(value: Mapping[str, Any], kinds: Mapping[str, registry.Kind]) -> str:
    """The kind that takes most keys of a mapping, the first of several."""
    return max(kinds, key=lambda name: len(value.keys() & kinds[name].spec.model_fields.keys()))


class Slot:
    """Annotation of a field that holds any kind of one slot: ``Annotated[Component, Slot("norm")]``."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.validate)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {SLOT_KEY: self.name}

    def validate(self, value: Any) -> Component:
        kinds = registry.kinds(self.name)
        if isinstance(value, Component):
            if any(isinstance(value, kind.spec) for _, kind in kinds.imported()):
                return value
            raise custom_error(f"must be one of the {self.name} kinds", suggestion(value.kind, kinds))
        if not isinstance(value, dict):
            raise custom_error(f"must be a mapping with a `kind` of {self.name}", self._example(value, kinds))
        name = value.get("kind", registry.default_kind(self.name))
        if name is None and "kind" not in value:
            fault = Fault((), f"needs a `kind` of {self.name}", value, f"Choose from: {', '.join(kinds)}.")
            raise ValidationError.from_exception_data(
                self.name,
                [fault.line_error(), *self._further(_most_alike(value, kinds), value, kinds, nested=True)],
            )
        if not isinstance(name, str) or name not in kinds:
            rule, remedy = f"must be a registered {self.name} kind", self._remedy(name, kinds)
            errors = [Fault(("kind",), rule, name, remedy).line_error(), *self._further(name, value, kinds)]
            raise ValidationError.from_exception_data(self.name, errors)
        return kinds[name].spec.model_validate(value)

    def _example(self, value: Any, kinds: Mapping[str, registry.Kind]) -> str:
        if not isinstance(value, str):
            return f"Write a mapping with a kind: {', '.join(kinds)}."
        meant = kind_meant(self.name, value)
        if meant is None and (kind := value if value in kinds else misspelt(value, kinds)):
            meant = {"kind": kind}
        if meant is None:
            return f"Write a mapping with a kind: {', '.join(kinds)}."
        return f"Write a mapping, such as {written(meant)}."

    def _remedy(self, name: Any, kinds: Mapping[str, registry.Kind]) -> str:
        meant = kind_meant(self.name, str(name))
        near = f"Did you mean {written(meant)}?" if meant else suggestion(str(name), kinds)
        homes = [slot for slot in registry.slots() if isinstance(name, str) and name in registry.kinds(slot)]
        if homes:
            near = f"{name} is a kind of {' and '.join(homes)}. {near}"
        return "\n".join([near, *map(str, broken_plugins())])

    def _further(
        self, name: Any, value: dict[str, Any], kinds: Mapping[str, registry.Kind], *, nested: bool = False
    ) -> Iterator[InitErrorDetails]:
        """The faults of the other keys, if it is clear which kind a wrong name means.

        ``nested``: only those of values that are written, as the kind is a guess.
        """
        if not isinstance(name, str):
            return
        meant = kind_meant(self.name, name) or {"kind": misspelt(name, kinds) or ""}
        if meant["kind"] not in kinds:
            return
        try:
            kinds[meant["kind"]].spec.model_validate(meant | value | {"kind": meant["kind"]})
        except ValidationError as error:
            for line in error.errors(include_url=False):
                if nested and len(line["loc"]) == 1 and line["type"] in ("missing", "unknown_key"):
                    continue
                custom = PydanticCustomError(line["type"], line["msg"], line.get("ctx"))
                yield InitErrorDetails(type=custom, loc=line["loc"], input=line["input"])
