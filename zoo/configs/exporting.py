"""From a spec to the config of a family, proven by reading it back."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from specs.base.errors import SpecPath, UserError, path_text, shorten
from specs.base.suggest import suggestion
from specs.forms.canonical import canonical, complete, differences
from specs.kinds.head import HeadKind
from specs.kinds.retrieval import Sparse
from specs.kinds.vocabulary_heads import MaskedLanguageModeling
from specs.model.model import Model
from zoo.configs.causal_encoder import as_decoder, as_encoder
from zoo.configs.head_modules import write_modules
from zoo.configs.importing import Read, of_causal_class, of_class, spec_of_config
from zoo.configs.sentence import body_class, masked_class, sentence_spec, sparse_spec
from zoo.configs.spans import write_spans
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError
from zoo.families.common.family import Family
from zoo.families.common.template import Data, UnfitError
from zoo.families.registry import families, family, model_types

_LISTED = 8


class NoFamilyError(UserError):
    """No family's config can express a spec; the message names the differences from the nearest."""


@dataclass(frozen=True)
class Misfit:
    """The parts of a spec that a class of a family cannot express; ``unlike`` where its fields could not even be filled in,
    or its architecture differs."""

    class_name: str
    reasons: tuple[str, ...]
    unlike: bool = True


def write_config(model: Model, model_type: str | None = None, *, preferred: str | None = None) -> Data:
    """Return the config of a spec for the first family that can express all of it, or for ``model_type``.

    ``preferred`` is the model_type of a family that is tried before the others. Each candidate is read back and must
    give the same architecture. Raises :class:`NoFamilyError`.
    """
    if model_type is not None and model_type not in model_types():
        raise NoFamilyError(
            f"Family {model_type!r} is unknown\n  {suggestion(model_type, sorted(model_types()))}"
        )
    misfits = []
    first = model_type or (preferred if preferred in model_types() else None)
    start = [family(first)] if first else []
    others = () if model_type else (other for other in families() if other.model_type != first)
    for candidate in itertools.chain(start, others):
        for class_name, sentence in _candidates(model, candidate):
            fitted = _fitted(model, candidate, class_name, sentence=sentence)
            if isinstance(fitted, dict):
                return fitted
            misfits.append(fitted)
    raise NoFamilyError(_refusal(model, misfits, model_type))


def sentence_files(
    model: Model, config: Data, settings: Data, *, static: bool
) -> dict[str, Data | list[Data]]:
    """Return the sentence-transformers files that describe the head of a spec whose config covers the body alone;
    otherwise none.

    ``settings`` are those of the module Transformer, where they are known; ``static`` says that queries have static weights.
    """
    (class_name,) = config["architectures"]
    same_head = family(config["model_type"]).classes[class_name].has(model.head.kind)
    return {} if same_head else write_modules(model, settings, static=static)


def _candidates(model: Model, candidate: Family) -> Iterator[tuple[str, bool]]:
    """Yield the classes of a family that may express a spec, and whether sentence-transformers modules describe its
    head."""
    yield from ((name, False) for name, head in candidate.classes.items() if head.has(model.head.kind))
    if (described := _class_before_modules(model.head, candidate)) is not None:
        yield described, True


def _class_before_modules(head: HeadKind, candidate: Family) -> str | None:
    """Return the class of a family on which modules build a head; None where the head or the family has none."""
    if isinstance(head, Sparse):
        return masked_class(candidate)
    return body_class(candidate) if head.embeds_texts or head.span_width is not None else None


def describes(model: Model, config: Data, written: Data, tensors: Callable[[], Collection[str]]) -> bool:
    """Return whether a config describes a spec, training and input length included, for the class of the config that
    :func:`write_config` wrote for it.  ``tensors`` gives the names of the tensors beside the config."""
    (class_name,) = written["architectures"]
    sentence = not family(written["model_type"]).classes[class_name].has(model.head.kind)
    try:
        model = as_encoder(model) if sentence else model
        read = _reading(model, sentence=sentence)
        back = spec_of_config(
            Config(config, "the stated config", tensors=tensors), name=model.name, read=read
        )
    except (UnfitError, ConfigError):
        return False
    return not any(differences(complete(model), complete(back)))


def _reading(model: Model, *, sentence: bool) -> Read:
    """Return what reads a config of a model back."""
    if sentence and isinstance(model.head, Sparse):
        return functools.partial(sparse_spec, model.head.model_dump(include=_OF_MODULES))
    if sentence:
        own_head = model.head.model_dump(mode="json", exclude_none=True)
        return functools.partial(sentence_spec, lambda width: own_head)
    return of_causal_class if _scores_text(model) and model.architecture == "encoder" else of_class


def _scores_text(model: Model) -> bool:
    """Return whether the head reads the last token, as a causal class with a score for a text does."""
    return model.head.label_count is not None and model.head.pools_last


def _fitted(model: Model, candidate: Family, class_name: str, *, sentence: bool) -> Data | Misfit:
    try:
        if sentence and isinstance(model.head, Sparse):
            data = candidate.config(_with_masked_scores(model, model.head), class_name)
        elif sentence:
            if model.head.span_width is None:
                write_modules(model, {})
            else:
                write_spans(model, {}, {})
            model = as_encoder(model)
            data = candidate.body_config(as_decoder(model), class_name)
        else:
            data = candidate.config(as_decoder(model) if _scores_text(model) else model, class_name)
        read = _reading(model, sentence=sentence)
        back = spec_of_config(Config(data, "the written config"), name=model.name, strict=True, read=read)
    except UnfitError as error:
        return Misfit(class_name, (str(error),))
    except ConfigError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return Misfit(class_name, tuple(lines[-1:]) or (type(error).__name__,))
    differing = list(differences(canonical(model), canonical(back)))
    reasons = tuple(dict.fromkeys(_reason(path, ours, theirs) for path, ours, theirs in differing))
    unlike = any(path[0] == "architecture" for path, _, _ in differing)
    return Misfit(class_name, reasons, unlike) if reasons else data


_OF_MODULES = set(Sparse.model_fields) - set(MaskedLanguageModeling.model_fields)
"""The keys of a sparse head that its module states, and its config does not."""


def _with_masked_scores(model: Model, head: Sparse) -> Model:
    """Return a model with a sparse head as the one that gives the scores of masked tokens."""
    keys = head.model_dump(exclude={"kind", *_OF_MODULES})
    return model.model_copy(update={"head": MaskedLanguageModeling.model_validate(keys)})


def _reason(path: SpecPath, ours: Any, theirs: Any) -> str:
    every = re.sub(r"\[\d+\]", "[*]", path_text(path))  # layers differ alike
    return f"{every}: {shorten(ours)} (it has {shorten(theirs)})"


def _refusal(model: Model, misfits: Iterable[Misfit], model_type: str | None) -> str:
    nearest = min(misfits, key=lambda misfit: (misfit.unlike, len(misfit.reasons)), default=None)
    if nearest is None:
        whose = f"{model_type} has no" if model_type else "No family has a"
        return f"{whose} class with head {model.head.kind}"
    listed = [f"  {reason}" for reason in nearest.reasons[:_LISTED]]
    if len(nearest.reasons) > _LISTED:
        listed.append(f"  ... and {len(nearest.reasons) - _LISTED} more")
    return "\n".join(
        [
            f"{model.name} fits no class of {model_type or 'any known family'}: "
            f"the nearest is {nearest.class_name}, which has no field for",
            *listed,
        ]
    )
