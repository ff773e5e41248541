"""From a spec to the config of a family, proven by reading it back."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from specs.canonical import canonical, differences
from specs.errors import SpecPath, UserError, path_text, shorten
from specs.model import Model
from specs.suggest import did_you_mean
from zoo.configs.config import Config, ConfigError
from zoo.configs.families import config_families, config_family, model_types
from zoo.configs.family import ConfigFamily, Data, UnfitError
from zoo.configs.importing import spec_of_config

_LISTED = 8


class NoFamilyError(UserError):
    """No family's config can say what a spec says; names what differs from the nearest."""


@dataclass(frozen=True)
class Misfit:
    """What of a spec one class of a family cannot say; ``unlike`` where not even its fields could be filled in, or its
    models are of another architecture."""

    class_name: str
    reasons: tuple[str, ...]
    unlike: bool = True


def write_config(model: Model, model_type: str | None = None, *, preferred: str | None = None) -> Data:
    """The config of a spec, for the first family that can say all of it, or for the one that is asked for.

    ``preferred`` is the model_type of a family that is tried before the others.
    Each candidate is read back, and has to give the same architecture.  Raises :class:`NoFamilyError`.
    """
    if model_type is not None and model_type not in model_types():
        raise NoFamilyError(f"there is no family {model_type!r}: {did_you_mean(model_type, model_types())}")
    misfits = []
    first = model_type or (preferred if preferred in model_types() else None)
    families = [config_family(first)] if first else []
    others = () if model_type else (each for each in config_families() if each.model_type != first)
    for family in itertools.chain(families, others):
        for class_name in family.classes:
            if family.classes[class_name].kind != model.head.kind:
                continue
            fitted = _fitted(model, family, class_name)
            if isinstance(fitted, dict):
                return fitted
            misfits.append(fitted)
    raise NoFamilyError(_refusal(model, misfits, model_type))


def _fitted(model: Model, family: ConfigFamily, class_name: str) -> Data | Misfit:
    try:
        data = family.config(model, class_name)
        back = spec_of_config(Config(data, "the config that was written"), name=model.name)
    except UnfitError as error:
        return Misfit(class_name, (str(error),))
    except ConfigError as error:
        return Misfit(class_name, (str(error).splitlines()[-1].strip(),))
    found = list(differences(canonical(model), canonical(back)))
    reasons = tuple(dict.fromkeys(_reason(path, ours, theirs) for path, ours, theirs in found))
    unlike = any(path[0] == "architecture" for path, _, _ in found)
    return Misfit(class_name, reasons, unlike) if reasons else data


def _reason(path: SpecPath, ours: Any, theirs: Any) -> str:
    every = re.sub(r"\[\d+\]", "[*]", path_text(path))  # layers differ alike
    return f"{every}: {shorten(ours)} (it has {shorten(theirs)})"


def _refusal(model: Model, misfits: Iterable[Misfit], model_type: str | None) -> str:
    nearest = min(misfits, key=lambda misfit: (misfit.unlike, len(misfit.reasons)), default=None)
    if nearest is None:
        whose = f"{model_type} configs have no" if model_type else "no family's config has a"
        return f"{whose} class with head {model.head.kind}"
    listed = [f"  {reason}" for reason in nearest.reasons[:_LISTED]]
    if len(nearest.reasons) > _LISTED:
        listed.append(f"  ... and {len(nearest.reasons) - _LISTED} more")
    return "\n".join(
        [
            f"{model.name} fits no class of {model_type or 'a family known'}: "
            f"the nearest is {nearest.class_name}, which has no field for",
            *listed,
        ]
    )
