"""The model that a user's argument names: a preset, a file, a checkpoint, a hub repository or an export."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from specs.base.errors import UserError, option_name
from specs.language.document import Document
from specs.language.load import read, varied
from specs.language.named_blocks import with_named_blocks
from specs.language.reference import SUFFIXES, hub_file, preset_file
from specs.language.validation import validate
from specs.model.model import Model
from zoo.configs.spec_beside import SPEC, spec_beside
from zoo.files.json_values import read_object

ReferenceKind = Literal["spec", "export", "checkpoint"]
Tell = Callable[[Sequence[str]], None]


@dataclass(frozen=True)
class NamedModel:
    """A spec, the document that assignments change, and the place of the files; ``reference`` is the argument.

    ``path`` is the directory or the file of a checkpoint or an export.  ``own_weights`` are the weights of a checkpoint, as
    :func:`zoo.checkpoints.open_weights.open_weights` takes them; None for a spec, and for a config without weights.
    """

    reference: str
    kind: ReferenceKind
    path: Path
    document: Document
    spec: Model
    own_weights: str | None = None
    family: str | None = None
    """The family that a checkpoint of an unknown type was read as."""
    passed_over: tuple[str, ...] = ()
    """The fields of its config that this family does not have."""

    def weights(self, wanted: str | None) -> str:
        """The weights that a user wants, or else the model's own, or else random.  Raises as :meth:`default_weights`."""
        return wanted or self.default_weights() or "random"

    def default_weights(self) -> str | None:
        """The model's own weights, if any.

        Raises :class:`specs.base.errors.UserError` for an export, whose weights are in its graphs alone.
        """
        if self.kind == "export":
            raise UserError(
                f"{self.reference} is an export, and its weights are in its graphs.\n"
                f"  Name the checkpoint that it was made from, or {self.path / SPEC} with {option_name('weights')}."
            )
        return self.own_weights


def named_model(
    reference: str | os.PathLike[str],
    assignments: Sequence[str] = (),
    name: str | None = None,
    family: str | None = None,
) -> NamedModel:
    """The model that a reference names, with ``path=value`` assignments applied in order, under another ``name`` if given.

    A checkpoint of an unknown type is read as one of the ``family``.

    A preset takes precedence over a directory of its name, and an existing path over a hub repository. No weights are read or
    fetched. Raises :class:`specs.base.errors.UserError` for a wrong reference, config or spec.
    """
    text = os.fspath(reference)
    kind, path = _located(text)
    passed_over: list[str] = []
    if family is not None and kind != "checkpoint":
        raise UserError(
            f"{option_name('family')} {family} is for checkpoints, and {text} is {_KINDS[kind]}\n  Leave it out."
        )
    document = varied(_document(text, kind, path, family, passed_over.extend), assignments, name)
    spec = validate(with_named_blocks(document))
    weights = _own_weights(text, kind, path)
    return NamedModel(text, kind, path, document, spec, weights, family, tuple(passed_over))


_KINDS: dict[ReferenceKind, str] = {"spec": "a spec", "export": "an export", "checkpoint": "a checkpoint"}


def unknown_family(reference: str, family: str | None) -> str | None:
    """The ``family`` where a reference is a checkpoint whose type no family has; None for others."""
    from zoo.families.common.config import CONFIG
    from zoo.families.registry import has_tensors

    kind, path = _located(reference)
    file = path / CONFIG if path.is_dir() else path
    if family is None or kind != "checkpoint" or file.suffix != ".json" or not os.path.lexists(file):
        return None
    return None if has_tensors(read_object(file, UserError).get("model_type")) else family


def model_kind(reference: str) -> ReferenceKind:
    """The kind of a reference; one that names nothing is a spec's.

    Raises :class:`specs.base.errors.UserError` for a directory of no kind.
    """
    return _located(reference)[0]


def _located(reference: str) -> tuple[ReferenceKind, Path]:
    """The kind of a reference and its path; a repository of the hub is fetched without weights."""
    path = Path(reference)
    if not reference or preset_file(reference) is not None or reference.endswith(SUFFIXES):
        return "spec", path
    from zoo.configs.recorded_spec import SPEC as RECORDED
    from zoo.families.common.config import CONFIG
    from zoo.files.ownership import MANIFEST
    from zoo.weights.adapters import refuse_adapter
    from zoo.weights.gguf_file import is_gguf
    from zoo.weights.hub import located
    from zoo.weights.modules import body_directory
    from zoo.weights.names import GLINER

    if os.path.isfile(path / MANIFEST):
        return "export", path
    held = located(reference, weights=False)
    refuse_adapter(held)
    if os.path.isdir(held):
        if (body := body_directory(held)) != held and os.path.lexists(body / CONFIG):
            return "checkpoint", held
        if {CONFIG, GLINER, SPEC, RECORDED}.isdisjoint(os.listdir(held)):
            files = sorted(name for name in os.listdir(held) if name.endswith(SUFFIXES))[:4]
            raise UserError(
                f"{reference} is neither an export nor a checkpoint: it has no {MANIFEST}, no {CONFIG} and no {SPEC}.\n"
                + (
                    f"  Name a file in it: {', '.join(files)}."
                    if files
                    else "  Name a directory that zoo build, zoo export or zoo convert wrote, a checkpoint, a preset or a YAML file."
                )
            )
        return "checkpoint", held
    if is_gguf(held) or held.suffix == ".json":
        return "checkpoint", held
    if os.path.isfile(held) and held.suffix in (".safetensors", ".bin", ".pt", ".pth"):
        raise UserError(
            f"{reference} has weights and no config.\n"
            f"  Name its directory if it has a {CONFIG}, or a spec with {option_name('weights')} {reference}."
        )
    return "spec", path


def _document(reference: str, kind: ReferenceKind, path: Path, family: str | None, tell: Tell) -> Document:
    if kind != "checkpoint":
        return read(path / SPEC if kind == "export" else reference)
    from specs.forms.resolved import resolved

    spec = checkpoint_spec(path, family, tell)
    assert spec is not None, "a checkpoint has one of these files"
    return Document(resolved(spec))


def checkpoint_spec(path: Path, family: str | None, tell: Tell = lambda names: None) -> Model | None:
    """The spec of a checkpoint: of its config.json, read as a ``family`` if given, or GGUF file, or else the spec.yaml in its
    directory, or the spec that a distributed checkpoint records; None where it has none of them.

    Raises :class:`specs.base.errors.UserError` for an invalid one.
    """
    from zoo.configs.importing import import_spec
    from zoo.configs.recorded_spec import recorded_spec
    from zoo.families.common.config import CONFIG
    from zoo.weights.gguf_file import is_gguf
    from zoo.weights.modules import body_directory
    from zoo.weights.names import GLINER

    configs = (path / GLINER, body_directory(path) / CONFIG)
    if path.suffix == ".json" or is_gguf(path) or any(map(os.path.lexists, configs)):
        return import_spec(path, family=family, tell=tell if family else lambda names: None)
    return spec_beside(path) or (recorded_spec(path) if path.is_dir() else None)


def _own_weights(reference: str, kind: ReferenceKind, path: Path) -> str | None:
    """The weights of a checkpoint; a repository of the hub is assumed to have some, which are fetched when they are read."""
    if kind != "checkpoint":
        return None
    from zoo.weights.modules import body_directory
    from zoo.weights.names import METADATA, has_weights

    if hub_file(reference)[0]:
        return reference
    if path.is_file() and path.suffix != ".json":
        return str(path)
    directory = body_directory(path) if path.is_dir() else path.parent
    names = os.listdir(directory)
    return str(path if path.is_dir() else directory) if has_weights(names) or METADATA in names else None
