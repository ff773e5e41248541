"""The artefacts that a zoo file asks for."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specs.base.errors import Problem, SpecError, UserError
from specs.base.roles import field_values
from specs.base.suggest import suggestion
from specs.files.export_options import ArtefactOptions, default_of, mark_of, option_word
from specs.files.zoo_file import (
    MAX_ARTEFACTS,
    OUTPUT,
    ZOO_FILE,
    ArtefactEntry,
    ModelEntry,
    Resources,
    ZooFile,
    load_zoo_file,
)
from specs.language.document import Document

MAX_COMBINATIONS = 100_000
"""The largest number of combinations of one matrix: they are tried one by one."""


@dataclass(frozen=True)
class ArtefactRequest:
    """One artefact: its ``name``, MODEL/ARTEFACT, the entry of its model, its options and its directory."""

    name: str
    model: str
    entry: ModelEntry
    options: ArtefactOptions
    resources: Resources
    directory: Path


@dataclass(frozen=True)
class Zoo:
    """A zoo file at its ``path``, and the artefacts it asks for."""

    path: Path
    file: ZooFile
    artefacts: tuple[ArtefactRequest, ...]

    @property
    def root(self) -> Path:
        """The directory that paths in the file are relative to."""
        return self.path.parent

    @property
    def lock(self) -> Path:
        """The lock file: zoo.lock for zoo.yaml, so that several zoo files of a directory have one each."""
        return self.path.with_suffix(".lock")

    def place(self, path: str) -> Path:
        """Return a path in the file, relative to the working directory."""
        return self.root / path

    def chosen(self, names: Sequence[str]) -> tuple[ArtefactRequest, ...]:
        """Return the artefacts of the named models, groups or artefacts; all where no name is given.

        Raises :class:`specs.base.errors.UserError` for a name that the zoo does not have.
        """
        chosen = {artefact.name for name in names for artefact in self._named(name)}
        return tuple(artefact for artefact in self.artefacts if not names or artefact.name in chosen)

    def _named(self, name: str) -> list[ArtefactRequest]:
        models = self.file.groups.get(name, (name,))
        named = [artefact for artefact in self.artefacts if artefact.model in models or artefact.name == name]
        if not named:
            known = [*self.file.models, *self.file.groups, *(artefact.name for artefact in self.artefacts)]
            raise UserError(
                f"{self.path} has no model, group or artefact of this name.\n"
                f"  value: {name!r}\n  {suggestion(name, known)}"
            )
        return named


def read_zoo(path: Path) -> Zoo:
    """The zoo of a file.  Raises :class:`specs.base.errors.SpecError` with every problem found."""
    file, document = load_zoo_file(path)
    artefacts: list[ArtefactRequest] = []
    for model, entry in file.models.items():
        artefacts += _artefacts(file, model, entry, path, document)
        _check_inside(path.parent, artefacts, document)
        if len(artefacts) > MAX_ARTEFACTS:
            rule = f"must ask for at most {MAX_ARTEFACTS:,} artefacts in all"
            raise SpecError(
                [Problem(rule, ("models", model), remedy="Use a smaller matrix.", mark=document.mark_of(()))]
            )
    return Zoo(path, file, tuple(artefacts))


def output_of(file: ZooFile, path: Path) -> str:
    """The directory for artefacts, relative to the zoo file: its own for each zoo file of a directory, unless stated."""
    if file.output is not None:
        return file.output
    return OUTPUT if path.stem == Path(ZOO_FILE).stem else f"{OUTPUT}/{path.stem}"


def _artefacts(
    file: ZooFile, model: str, entry: ModelEntry, path: Path, document: Document
) -> Iterator[ArtefactRequest]:
    shared = {**file.defaults.options, **entry.options}
    resources = entry.resources if "resources" in entry.model_fields_set else file.defaults.resources
    names: dict[str, ArtefactOptions] = {}
    for options in _options_of(file, model, entry, shared, document):
        name = _name_of(options)
        if names.get(name, options) == options and name in names:
            continue
        if name in names:
            where = ("models", model, "artefacts")
            remedy = "Give one of them another name."
            rule = "must have different names"
            raise SpecError([Problem(rule, where, name, remedy, document.mark_of(where))])
        names[name] = options
        directory = path.parent / output_of(file, path) / model / name
        yield ArtefactRequest(f"{model}/{name}", model, entry, options, resources, directory)


def _check_inside(root: Path, artefacts: Sequence[ArtefactRequest], document: Document) -> None:
    """Raise :class:`SpecError` where a link leads an output directory out of the directory of the zoo file."""
    real = os.path.realpath(root)
    for artefact in artefacts:
        target = os.path.realpath(artefact.directory)
        if os.path.commonpath([real, target]) != real:
            rule = (
                f"must stay below the zoo file's directory, but a link leads {artefact.directory} to {target}"
            )
            remedy = "Replace the link by a directory, or move the zoo file there."
            raise SpecError([Problem(rule, ("output",), remedy=remedy, mark=document.mark_of(("output",)))])


def _options_of(
    file: ZooFile, model: str, entry: ModelEntry, shared: dict[str, Any], document: Document
) -> Iterator[ArtefactOptions]:
    matrix = entry.matrix if "matrix" in entry.model_fields_set else file.defaults.matrix
    excluded = (*file.defaults.exclude, *entry.exclude)
    if matrix or not entry.artefacts:
        if math.prod(map(len, matrix.values())) > MAX_COMBINATIONS:
            rule = f"must have at most {MAX_COMBINATIONS:,} combinations, before any is excluded"
            where = ("models", model, "matrix")
            raise SpecError(
                [Problem(rule, where, remedy="Use a smaller matrix.", mark=document.mark_of(where))]
            )
        for values in itertools.product(*matrix.values()):
            options = ArtefactOptions.model_validate({**shared, **dict(zip(matrix, values, strict=True))})
            if not any(_matches(options, values) for values in excluded):
                yield options
    for artefact in entry.artefacts:
        yield ArtefactEntry.model_validate({**shared, **artefact.model_dump(exclude_unset=True)})


def _matches(options: ArtefactOptions, excluded: dict[str, Any]) -> bool:
    values = field_values(options)
    return all(values[option] == value for option, value in excluded.items())


def _name_of(options: ArtefactOptions) -> str:
    """Return a name such as ``cpu-int8`` or ``cpu-int4-genai-logits-last``: target, precision, and the other options that
    shape the files and are not at their defaults."""
    if isinstance(options, ArtefactEntry) and options.name is not None:
        return options.name
    words = [options.target, options.precision]
    for name, value in options:
        if name in ("target", "precision", "name") or not mark_of(name).word or value == default_of(name):
            continue
        words.append(name.replace("_", "-") if value is True else _word(name, value))
    return "-".join(words)


def _word(name: str, value: Any) -> str:
    plain = option_word(value)
    return plain if mark_of(name).word == "{}" else f"{name.replace('_', '-')}-{plain}"
