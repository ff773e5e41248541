"""Rotary positions in a config: ``rope_parameters`` as configs have them now, or ``rope_theta`` and ``rope_scaling``.

The reference is ``transformers.modeling_rope_utils``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from specs.base.suggest import suggestion
from specs.kinds.position import PositionKind
from specs.kinds.rope import Rope as RopeSpec
from zoo.families.common.config import Config
from zoo.families.common.template import Data, Field, FieldContext, Template, UnfitError, read, write
from zoo.families.common.typed_fields import REQUIRED

OF_ROPE = ("rope_theta", "rope_scaling", "rope_parameters")
"""Fields of rotary positions."""

_ORIGINAL = "original_max_position_embeddings"


@dataclass(frozen=True)
class RopeParameters:
    """The rotary parameters that the configs of a family state.

    ``scalings`` are the scalings that it takes, by its names for them (default: all), ``original`` is its default of
    original_max_position_embeddings outside the scaling, and ``unstated`` are the parameters of a config that states none.
    ``ignored`` are parameters that make no difference to text.
    """

    scalings: Mapping[str, str] | None = None
    original: int | None = None
    unstated: Mapping[str, Any] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()

    @property
    def names(self) -> Mapping[str, str]:
        """The scalings that the family takes, by its names for them."""
        return {kind: kind for kind in _SCALINGS} if self.scalings is None else self.scalings


class RopeField(Field):
    """The rotary position of heads of ``width``.

    ``context`` is the field of the context length; ``theta`` and ``fraction``, the rotated part of a head, are the family's
    defaults.  ``whole`` is why a family rotates only whole heads.  ``names`` are the fields of the base and of the rotated
    part, ``parameters`` the other rotary parameters, and ``more`` further keys of the position.
    """

    component = PositionKind

    def __init__(
        self,
        width: Template,
        context: Field,
        *,
        theta: float = 10000.0,
        fraction: Template = 1.0,
        whole: str = "",
        names: tuple[str, str] = ("rope_theta", "partial_rotary_factor"),
        parameters: RopeParameters = RopeParameters(),
        **more: Template,
    ) -> None:
        self.width, self.context, self.theta, self.fraction = width, context, theta, fraction
        self.whole, self.names, self.parameters, self.more = whole, names, parameters, more

    def read(self, config: Config) -> Data:
        if self.names[0] != "rope_theta":
            config.pass_over("rope_theta")
        parameters = stated_parameters(config)
        return self.read_parameters(config, parameters or Config(self.parameters.unstated, config.where))

    def read_parameters(self, config: Config, parameters: Config, theta: float | None = None) -> Data:
        """The position of a config with these rotary ``parameters``; ``theta`` is the base if they state none."""
        width, context = read(self.width, config), self.context.read(config)
        theta_name, fraction_name = self.names
        old_theta = (config.float(theta_name) or self.theta) if theta is None else theta
        default = read(self.fraction, config)  # in any case: another field may state it
        old_fraction = config.float(fraction_name) or default
        outside = config.int(_ORIGINAL, default=self.parameters.original)
        for holder, length in ((config, outside), (parameters, parameters.int(_ORIGINAL))):
            if length is not None and length < 2:
                holder.refuse(_ORIGINAL, "must be at least 2")
        base = parameters.float("rope_theta", default=old_theta)
        part = parameters.float("partial_rotary_factor", default=old_fraction)
        kind = parameters.text("rope_type", default=parameters.text("type", default="default"))
        parameters.ignore("rope_type", "type", "finetuned", *self.parameters.ignored)
        if width >= 1 and not 0 <= width * part < width + 1:
            inside = parameters.has("partial_rotary_factor")
            holder, name = (parameters, "partial_rotary_factor") if inside else (config, fraction_name)
            holder.refuse(name, "must be from 0 to 1, the rotated share of a head")
        position: Data = {"kind": "rope", "theta": base, **read(self.more, config)}
        scaling = self.parameters.names.get(kind)
        proportional = scaling == "proportional"
        if int(width * part) != width and not proportional:
            if self.whole:
                config.refuse("partial_rotary_factor", f"must be 1: {self.whole}")
            position["dimensions"] = int(width * part)
        if kind != "default":
            if scaling is None:
                name = "rope_type" if parameters.has("rope_type") else "type"
                parameters.refuse(
                    name, "is not supported", suggestion(kind, ["default", *self.parameters.names])
                )
            position["scaling"] = _SCALINGS[scaling](parameters, context, outside)
            if proportional:
                position["scaling"]["fraction"] = part
        parameters.finish()
        return position

    def write(self, value: PositionKind, context: FieldContext) -> Data:
        """The fields of a rotary position, in the spelling that old and new readers take."""
        rope = rope_of(value)
        theta, fraction = self.names
        fields: Data = {theta: rope.theta, "rope_scaling": None}
        if self.fraction != 1.0 or rope.dimensions not in (None, context.head_width()):
            fields[fraction] = _rotated_part(rope, context.head_width())
        fields |= write(self.more, rope, context)
        if (original := self.parameters.original) is not None:
            fields[_ORIGINAL] = getattr(rope.scaling, "original_context_length", original)
        if rope.scaling is None:
            return (
                {**fields, "rope_scaling": {"rope_type": "default"}} if self.parameters.unstated else fields
            )
        parameters: dict[str, Any] = rope.scaling.model_dump(mode="json", exclude_none=True)
        kind = parameters.pop("kind")
        if kind not in _KINDS:
            raise UnfitError(f"rope scaling {kind}")
        if kind == "dynamic_ntk":  # whose reference takes the context for the original one
            fields |= self.context.write(parameters.pop("original_context_length"), context)
        scaling = {
            "rope_type": _KINDS[kind],
            **{_FIELDS.get(key, key): parameter for key, parameter in parameters.items()},
        }
        return {**fields, "rope_scaling": scaling}


def stated_parameters(config: Config) -> Config | None:
    """Return the rotary parameters of a config; ``rope_scaling`` takes precedence over ``rope_parameters``."""
    scaling = config.part("rope_scaling")
    if scaling is None or not scaling.data:
        return config.part("rope_parameters")
    config.ignore("rope_parameters")
    return scaling


def _original(parameters: Config, context: int | None, outside: int | None) -> int:
    """Return the context length before scaling: a field outside the scaling overrides the one inside."""
    default = REQUIRED if context is None and outside is None else context
    inside: int = parameters.int(_ORIGINAL, default=default)
    return inside if outside is None else outside


def _factor(parameters: Config, context: int | None, original: int) -> float:
    """Return the factor, by default the growth of the context length."""
    factor: float = parameters.float("factor", default=REQUIRED if context is None else context / original)
    return factor


def _linear(parameters: Config, context: int | None, outside: int | None) -> Data:
    parameters.ignore(_ORIGINAL)
    return {"kind": "linear", "factor": parameters.float("factor", default=REQUIRED)}


def _proportional(parameters: Config, context: int | None, outside: int | None) -> Data:
    return {"kind": "proportional", "factor": parameters.float("factor", default=1.0)}


def _dynamic(parameters: Config, context: int | None, outside: int | None) -> Data:
    if context is None:
        parameters.refuse("rope_type", "must not be dynamic in a model without a context length")
    parameters.ignore(_ORIGINAL)  # the reference takes max_position_embeddings
    factor = parameters.float("factor", default=REQUIRED)
    return {"kind": "dynamic_ntk", "factor": factor, "original_context_length": context}


def _llama3(parameters: Config, context: int | None, outside: int | None) -> Data:
    fields = ("factor", "low_freq_factor", "high_freq_factor")
    numbers = {name: parameters.float(name, default=REQUIRED) for name in fields}
    return {"kind": "llama3", **numbers, "original_context_length": _original(parameters, context, outside)}


def _yarn(parameters: Config, context: int | None, outside: int | None) -> Data:
    original = _original(parameters, context, outside)
    factor = _factor(parameters, context, original)
    amplitude = parameters.float("attention_factor")
    mscale, mscale_all_dim = parameters.float("mscale"), parameters.float("mscale_all_dim")
    if amplitude is None and mscale and mscale_all_dim:
        amplitude = yarn_amplitude(factor, mscale) / yarn_amplitude(factor, mscale_all_dim)
    scaling = {
        "kind": "yarn",
        "factor": factor,
        "original_context_length": original,
        "beta_fast": parameters.float("beta_fast") or 32.0,
        "beta_slow": parameters.float("beta_slow") or 1.0,
        "truncate": parameters.bool("truncate", default=True),
    }
    return scaling if amplitude is None else {**scaling, "attention_factor": amplitude}


def yarn_amplitude(factor: float, mscale: float = 1.0) -> float:
    """The amplitude that YaRN gives cos and sin."""
    return 0.1 * mscale * math.log(factor) + 1.0 if factor > 1 else 1.0


def yarn_mscale(factor: float, amplitude: float) -> float:
    """The mscale that gives an amplitude."""
    return float(f"{(amplitude - 1.0) / (0.1 * math.log(factor)):.13g}")


def _numbers(parameters: Config, name: str) -> list[float]:
    numbers = parameters.list(name, default=REQUIRED)
    if any(type(number) not in (int, float) for number in numbers):
        parameters.refuse(
            name, "must be a list of numbers", "Use the list that was published with the weights."
        )
    return [float(number) for number in numbers]


def _longrope(parameters: Config, context: int | None, outside: int | None) -> Data:
    original = _original(parameters, context, outside)
    factor = _factor(parameters, context, original)
    amplitude = parameters.float("attention_factor")
    if amplitude is None:
        amplitude = math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0
    factors = {name: _numbers(parameters, name) for name in ("short_factor", "long_factor")}
    return {"kind": "longrope", **factors, "original_context_length": original, "attention_factor": amplitude}


_SCALINGS: dict[str, Callable[[Config, int | None, int | None], Data]] = {
    "linear": _linear,
    "proportional": _proportional,
    "dynamic": _dynamic,
    "llama3": _llama3,
    "yarn": _yarn,
    "longrope": _longrope,
}

_FIELDS = {"original_context_length": _ORIGINAL, "fraction": "partial_rotary_factor"}
"""The fields of scalings whose names differ between configs and specs."""

_KINDS = {
    "linear": "linear",
    "proportional": "proportional",
    "dynamic_ntk": "dynamic",
    "llama3": "llama3",
    "yarn": "yarn",
    "longrope": "longrope",
}


def rope_of(position: PositionKind) -> RopeSpec:
    """Return the position, which must be rotary. Raises :class:`UnfitError` otherwise."""
    if not isinstance(position, RopeSpec):
        raise UnfitError(f"position kind {position.kind}")
    return position


def _rotated_part(rope: RopeSpec, width: int) -> float:
    """Return the rotated fraction of a head, which gives the number of rotated dimensions when rounded down."""
    dimensions = rope.dimensions or width
    fraction = dimensions / width
    return fraction if int(width * fraction) == dimensions else math.nextafter(fraction, 2.0)
