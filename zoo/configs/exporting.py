"""From a spec to the config of a family, proven by reading it back."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from specs.canonical import canonical, differences
from specs.errors import SpecPath, UserError, path_text, shorten
from specs.head import Pooled
from specs.model import Model
from specs.suggest import did_you_mean
from zoo.configs.config import Config, ConfigError
from zoo.configs.families import config_families, config_family, model_types
from zoo.configs.family import ConfigFamily, Data, UnfitError
from zoo.configs.importing import spec_of_config
from zoo.configs.sentence import body_class, write_modules

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
        for class_name, sentence in _candidates(model, family):
            fitted = _fitted(model, family, class_name, sentence=sentence)
            if isinstance(fitted, dict):
                return fitted
            misfits.append(fitted)
    raise NoFamilyError(_refusal(model, misfits, model_type))


def sentence_files(model: Model, config: Data, settings: Data) -> dict[str, Data | list[Data]]:
    """The files of sentence-transformers that say the head of a spec where its config is that of the body alone; else none.

    ``settings`` are those of its module Transformer, where they are known.
    """
    (class_name,) = config["architectures"]
    said = config_family(config["model_type"]).classes[class_name].kind == model.head.kind
    return {} if said else write_modules(model, settings)


def _candidates(model: Model, family: ConfigFamily) -> Iterator[tuple[str, bool]]:
    """The classes of a family that may say a spec, and whether modules of sentence-transformers say its head."""
    yield from ((name, False) for name, head in family.classes.items() if head.kind == model.head.kind)
    if isinstance(model.head, Pooled) and (bare := body_class(family)) is not None:
        yield bare, True


def _fitted(model: Model, family: ConfigFamily, class_name: str, *, sentence: bool) -> Data | Misfit:
    try:
        if sentence:
            write_modules(model, {})
        data = family.body_config(model, class_name) if sentence else family.config(model, class_name)
        own_head = model.head.model_dump(mode="json", exclude_none=True)
        back = spec_of_config(
            Config(data, "the config that was written"),
            name=model.name,
            strict=True,
            sentence_head=(lambda width: own_head) if sentence else None,
        )
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
