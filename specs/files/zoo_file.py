"""``zoo.yaml``: the models that a team keeps, and the artefacts wanted of each."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError

from specs.base.base import Spec, custom_error
from specs.base.errors import Problem, SpecError
from specs.base.suggest import suggestion
from specs.files.export_options import ArtefactOptions, WeightOptions
from specs.language.document import Document
from specs.language.merging import merge
from specs.language.spec_file import read_file
from specs.language.validation import problems

ZOO_FILE = "zoo.yaml"
OUTPUT = "build"
MAX_EXTENDS = 16
"""How many zoo files may extend one another in a row."""

MAX_ARTEFACTS = 10_000

_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_MOST = 2**63
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?(B|KB|MB|GB|TB)")


def parse_size(text: str) -> int:
    """The bytes of a size such as ``16GB``.  Raises a pydantic error for anything else."""
    match = _SIZE.fullmatch(text)
    size = int(Decimal(match[1]) * _UNITS[match[2]]) if match else _MOST
    if size >= _MOST:
        raise custom_error("must be a size: a number and B, KB, MB, GB or TB", "Write a size such as 16GB.")
    return size


def _size(text: str) -> str:
    parse_size(text)
    return text


def _inside(path: str) -> str:
    if not path or path.startswith("/") or ".." in Path(path).parts or "\0" in path:
        raise custom_error("must be a path below the zoo file's directory", "Write a path such as build.")
    return path


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+=,@-]{0,127}$")]
Size = Annotated[str, AfterValidator(_size)]
Strings = Annotated[tuple[str, ...], Field(strict=False)]
Values = Annotated[tuple[Any, ...], Field(strict=False, min_length=1)]
Combinations = Annotated[tuple[dict[str, Any], ...], Field(strict=False)]


class ArtefactEntry(ArtefactOptions):
    """One artefact, with options of its own."""

    name: Name | None = None
    """The name of its directory. Default: the target, the precision, and every other option that is not the default."""


class Resources(Spec):
    """The reservations of one build: cores, memory and GPUs."""

    cpus: Annotated[int, Field(gt=0)] = 1
    """Processor cores."""
    memory: Size | None = None
    """Memory, such as 16GB. Default: no reservation."""
    gpus: Annotated[int, Field(ge=0)] = 0
    """GPUs."""


class ModelEntry(WeightOptions):
    """A model, and the artefacts wanted of it. Paths are relative to the zoo file."""

    spec: str | None = None
    """A preset, the path of a spec or a checkpoint, or a hub repository; a checkpoint brings its weights. Default: the spec of the
    weights, or else the preset of the model's name."""
    set: Strings = ()
    """Assignments laid over the spec, such as position.kind=rope."""
    revision: str | None = None
    """The branch, tag or commit of a hub repository. The lock file pins its commit. Default: main."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of every artefact of this model."""
    matrix: dict[str, Values] = Field(default_factory=dict)
    """Values by option: one artefact for each combination. Default: the matrix of `defaults`; `{}` for none."""
    exclude: Combinations = ()
    """Combinations of the matrix to leave out: those that have all the values of an entry."""
    artefacts: Annotated[tuple[ArtefactEntry, ...], Field(strict=False)] = ()
    """Further artefacts, in addition to the matrix."""
    resources: Resources = Resources()
    """Reservations of a build of this model, for executors that place builds on machines."""


class Defaults(Spec):
    """Options, matrix and resources of every model without its own."""

    options: dict[str, Any] = Field(default_factory=dict)
    """Options of every artefact."""
    matrix: dict[str, Values] = Field(default_factory=dict)
    """The matrix of every model without one."""
    exclude: Combinations = ()
    """Combinations that every matrix leaves out."""
    resources: Resources = Resources()
    """The resources of every model that states none."""


class ZooFile(Spec):
    """A zoo: models by name, each with the artefacts wanted of it."""

    output: Annotated[str, AfterValidator(_inside)] | None = None
    """The directory for artefacts, relative to the zoo file: each is in OUTPUT/MODEL/ARTEFACT. Default: build for zoo.yaml, and build/NAME for NAME.yaml."""
    defaults: Defaults = Defaults()
    """Options, matrix and resources of every model without its own."""
    models: Annotated[dict[Name, ModelEntry], Field(min_length=1)]
    """The models by name."""
    groups: dict[Name, Strings] = Field(default_factory=dict)
    """Names for several models, to be used wherever a model is named."""


def load_zoo_file(path: Path) -> tuple[ZooFile, Document]:
    """A zoo file laid over the one that it extends, and its document, which knows the line of every value.

    Raises :class:`specs.base.errors.SpecError` with every problem found.
    """
    document = _extended(path)
    try:
        zoo = ZooFile.model_validate(document.data)
    except ValidationError as error:
        raise SpecError(problems(error, document, ZooFile)) from None
    if faults := [*_group_faults(zoo, document), *_option_faults(zoo, document)]:
        raise SpecError(faults)
    return zoo, document


def _extended(path: Path) -> Document:
    documents, files, extending = [read_file(path)], [path.resolve()], path
    while "extends" in documents[-1].data:
        document = documents[-1]
        base = document.data["extends"]
        mark = document.mark_of(("extends",))
        target = extending.parent / base if isinstance(base, str) else None
        if target is None or target.suffix not in (".yaml", ".yml") or not target.is_file():
            rule, remedy = "must be the path of a zoo file", "Give a YAML file, relative to this one."
            raise SpecError([Problem(rule, ("extends",), base, remedy, mark)])
        if target.resolve() in files or len(files) >= MAX_EXTENDS:
            rule = f"must not lead back to itself, nor through more than {MAX_EXTENDS} files"
            raise SpecError([Problem(rule, ("extends",), base, "Extend a file that extends none.", mark)])
        documents.append(read_file(target))
        files.append(target.resolve())
        extending = target
    document, *overrides = reversed(documents)
    for override in (*overrides, Document({})):
        data = {key: value for key, value in document.data.items() if key != "extends"}
        document = merge(
            Document(data, document.marks, document.key_marks), override, lambda mapping, kind: mapping
        )
    return document


def _group_faults(zoo: ZooFile, document: Document) -> list[Problem]:
    faults = []
    for group, members in zoo.groups.items():
        if group in zoo.models:
            rule, remedy = "must not have the name of a model", "Rename the group."
            faults.append(
                Problem(rule, ("groups", group), group, remedy, document.mark_of(("groups", group)))
            )
        for index, member in enumerate(members):
            if member not in zoo.models:
                where = ("groups", group, index)
                remedy = suggestion(member, zoo.models)
                faults.append(
                    Problem("must be the name of a model", where, member, remedy, document.mark_of(where))
                )
    return faults


def _option_faults(zoo: ZooFile, document: Document) -> list[Problem]:
    """The keys of options, matrices and exclusions that no export has, and values that it does not take."""
    faults: list[Problem] = []
    places: list[tuple[tuple[str, ...], Defaults | ModelEntry]] = [
        (("defaults",), zoo.defaults),
        *((("models", name), entry) for name, entry in zoo.models.items()),
    ]
    for where, part in places:
        faults += _faults_of((*where, "options"), part.options, document)
        for option, values in part.matrix.items():
            for index, value in enumerate(values):
                faults += _faults_of((*where, "matrix"), {option: value}, document, (option, index))
        for index, excluded in enumerate(part.exclude):
            faults += _faults_of((*where, "exclude", index), excluded, document)
    return faults


def _faults_of(
    where: tuple[str | int, ...],
    options: dict[str, Any],
    document: Document,
    place_in_file: tuple[str | int, ...] | None = None,
) -> list[Problem]:
    try:
        ArtefactOptions.model_validate(options)
    except ValidationError as error:
        faults = problems(error, Document(options), ArtefactOptions)
        return [
            Problem(
                fault.rule,
                (*where, *(place_in_file or fault.path)),
                fault.value,
                fault.remedy,
                document.mark_of((*where, *(place_in_file or fault.path))),
            )
            for fault in faults
        ]
    return []
