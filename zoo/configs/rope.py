"""Rotary positions in a config: ``rope_parameters`` as configs have them now, or ``rope_theta`` and ``rope_scaling``.

The reference is ``transformers.modeling_rope_utils``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from specs.base import Component
from specs.position import Rope
from specs.suggest import did_you_mean
from zoo.configs.config import REQUIRED, Config
from zoo.configs.family import Data, UnfitError


def read_rope(
    config: Config,
    *,
    width: int,
    context: int,
    theta: float = 10000.0,
    fraction: float = 1.0,
    parameters: Config | None = None,
    kinds: Mapping[str, str] | None = None,
    original: int | None = None,
) -> Data:
    """The position of a spec for heads of ``width``, of which a ``fraction`` is rotated where the config does not say.

    ``context`` is max_position_embeddings, ``theta`` the family's default.  ``parameters`` are those of one kind of layer where a
    config has several.  ``kinds`` are the scalings that a family takes, by its names for them (default: all), and
    ``original`` is what it has for original_max_position_embeddings where that is no field of the scaling.
    """
    kinds = {kind: kind for kind in _SCALINGS} if kinds is None else kinds
    old_theta = config.float("rope_theta", "rotary_emb_base")
    old_fraction = config.float("partial_rotary_factor", "rotary_pct")
    old_scaling = config.part("rope_scaling")
    outside = config.int("original_max_position_embeddings", default=original)
    stated = parameters or old_scaling or config.part("rope_parameters") or Config({}, config.where)
    base = stated.float("rope_theta", default=old_theta or theta)
    part = stated.float("partial_rotary_factor", default=old_fraction or fraction)
    kind = stated.text("rope_type", "type", default="default")
    stated.ignore("rope_type", "type")
    if not 0 <= width * part < width + 1:
        holder, names = (stated, ()) if stated.has("partial_rotary_factor") else (config, ("rotary_pct",))
        name = next((each for each in names if config.has(each)), "partial_rotary_factor")
        holder.refuse(name, "must be from 0 to 1: it is the part of a head that is rotated")
    position: Data = {"kind": "rope", "theta": base}
    if int(width * part) != width:
        position["dimensions"] = int(width * part)
    if kind != "default":
        if kind not in kinds:
            name = "rope_type" if stated.has("rope_type") else "type"
            stated.refuse(name, "is not modelled", did_you_mean(kind, ["default", *kinds]))
        position["scaling"] = _SCALINGS[kinds[kind]](stated, context, outside)
    stated.finish()
    return position


def _original(stated: Config, context: int, outside: int | None) -> int:
    """The context before scaling: what the config says outside the scaling goes before what it says inside."""
    inside: int = stated.int("original_max_position_embeddings", default=context)
    return inside if outside is None else outside


def _linear(stated: Config, context: int, outside: int | None) -> Data:
    stated.ignore("original_max_position_embeddings")
    return {"kind": "linear", "factor": stated.float("factor", default=REQUIRED)}


def _dynamic(stated: Config, context: int, outside: int | None) -> Data:
    stated.ignore("original_max_position_embeddings")  # the reference takes max_position_embeddings
    factor = stated.float("factor", default=REQUIRED)
    return {"kind": "dynamic_ntk", "factor": factor, "original_context_length": context}


def _llama3(stated: Config, context: int, outside: int | None) -> Data:
    fields = ("factor", "low_freq_factor", "high_freq_factor")
    numbers = {name: stated.float(name, default=REQUIRED) for name in fields}
    return {"kind": "llama3", **numbers, "original_context_length": _original(stated, context, outside)}


def _yarn(stated: Config, context: int, outside: int | None) -> Data:
    original = _original(stated, context, outside)
    factor = stated.float("factor", default=context / original)
    amplitude = stated.float("attention_factor")
    mscale, mscale_all_dim = stated.float("mscale"), stated.float("mscale_all_dim")
    if amplitude is None and mscale and mscale_all_dim:
        amplitude = yarn_amplitude(factor, mscale) / yarn_amplitude(factor, mscale_all_dim)
    scaling = {
        "kind": "yarn",
        "factor": factor,
        "original_context_length": original,
        "beta_fast": stated.float("beta_fast") or 32.0,
        "beta_slow": stated.float("beta_slow") or 1.0,
        "truncate": stated.bool("truncate", default=True),
    }
    return scaling if amplitude is None else {**scaling, "attention_factor": amplitude}


def yarn_amplitude(factor: float, mscale: float = 1.0) -> float:
    """The amplitude that YaRN gives cos and sin."""
    return 0.1 * mscale * math.log(factor) + 1.0 if factor > 1 else 1.0


def yarn_mscale(factor: float, amplitude: float) -> float:
    """The mscale that gives an amplitude."""
    return float(f"{(amplitude - 1.0) / (0.1 * math.log(factor)):.13g}")


def _longrope(stated: Config, context: int, outside: int | None) -> Data:
    original = _original(stated, context, outside)
    factor = stated.float("factor", default=context / original)
    amplitude = stated.float("attention_factor")
    if amplitude is None:
        amplitude = math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0
    factors = {
        name: [float(value) for value in stated.list(name, default=REQUIRED)]
        for name in ("short_factor", "long_factor")
    }
    return {
        "kind": "longrope",
        **factors,
        "original_context_length": original,
        "attention_factor": amplitude,
    }


_SCALINGS: dict[str, Callable[[Config, int, int | None], Data]] = {
    "linear": _linear,
    "dynamic": _dynamic,
    "llama3": _llama3,
    "yarn": _yarn,
    "longrope": _longrope,
}

_FIELDS = {
    "factor": "factor",
    "low_freq_factor": "low_freq_factor",
    "high_freq_factor": "high_freq_factor",
    "original_context_length": "original_max_position_embeddings",
    "beta_fast": "beta_fast",
    "beta_slow": "beta_slow",
    "attention_factor": "attention_factor",
    "truncate": "truncate",
    "short_factor": "short_factor",
    "long_factor": "long_factor",
}
_KINDS = {
    "linear": "linear",
    "dynamic_ntk": "dynamic",
    "llama3": "llama3",
    "yarn": "yarn",
    "longrope": "longrope",
}


def rope_of(position: Component) -> Rope:
    """A position that has to be rotary.  Raises :class:`UnfitError`."""
    if not isinstance(position, Rope):
        raise UnfitError(f"position kind {position.kind}")
    return position


def rotated_part(rope: Rope, width: int) -> float:
    """The fraction of a head that is rotated, such that as many dimensions come of it when it is rounded down."""
    dimensions = rope.dimensions or width
    fraction = dimensions / width
    return fraction if int(width * fraction) == dimensions else math.nextafter(fraction, 2.0)


def write_rope(position: Component, *, width: int) -> Data:
    """The fields of a rotary position, in the spelling that old and new readers take.

    Raises :class:`UnfitError` for another position.
    """
    rope = rope_of(position)
    fields: Data = {"rope_theta": rope.theta, "rope_scaling": None}
    if rope.dimensions is not None and rope.dimensions != width:
        fields["partial_rotary_factor"] = rotated_part(rope, width)
    if rope.scaling is not None:
        stated: dict[str, Any] = rope.scaling.model_dump(mode="json", exclude_none=True)
        kind = stated.pop("kind")
        if kind not in _KINDS:
            raise UnfitError(f"rope scaling {kind}")
        if kind == "dynamic_ntk":  # whose reference takes the context for the original one
            fields["max_position_embeddings"] = stated.pop("original_context_length")
        scaling: Data = {"rope_type": _KINDS[kind], **{_FIELDS[key]: value for key, value in stated.items()}}
        fields["rope_scaling"] = scaling
    return fields
