"""The models of a zoo file: their specs, and the location of their weights."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from exporters.making.artefacts import Zoo
from exporters.making.digests import FileDigests
from exporters.making.inputs import digest_of
from specs.base.errors import UserError
from specs.files.zoo_file import ModelEntry
from specs.forms.resolved import resolved
from specs.language.load import load
from specs.language.reference import SUFFIXES, is_hub_id
from specs.model.model import Model
from zoo.weights.hub import HubError, commit_of, fetch


@dataclass(frozen=True)
class ModelInputs:
    """The spec of a model, and its weights as an export names them: random, none, a path, or a repository at a ``commit``.

    ``identity`` is equal for weights with equal contents.
    """

    spec: Model
    weights: str
    identity: str
    commit: str | None = None

    @cached_property
    def spec_digest(self) -> str:
        """The SHA-256 of the resolved spec."""
        return digest_of(resolved(self.spec))


def model_inputs(zoo: Zoo, name: str, digests: FileDigests, commits: dict[str, str]) -> ModelInputs:
    """Return the inputs of a model.

    ``commits`` holds the commits of hub repositories by ``org/name@revision``; missing ones are looked up and added.
    Raises :class:`specs.base.errors.UserError`, which names the model.
    """
    entry = zoo.file.models[name]
    try:
        return _model_inputs(zoo, name, entry, digests, commits)
    except HubError as error:
        raise HubError(f"{zoo.path}: models.{name}: {error.text}") from None
    except UserError as error:
        raise UserError(f"{zoo.path}: models.{name}: {error.text}") from None


def _model_inputs(
    zoo: Zoo, name: str, entry: ModelEntry, digests: FileDigests, commits: dict[str, str]
) -> ModelInputs:
    if entry.weights in ("random", "none"):
        identity = f"random, seed {entry.seed}" if entry.weights == "random" else "none"
        return ModelInputs(_spec(zoo, name, entry, None), entry.weights, identity)
    place = zoo.place(entry.weights)
    if os.path.exists(place):
        identity = f"files:{digests.of(place)}"
        return ModelInputs(_spec(zoo, name, entry, place), str(place), identity)
    if not is_hub_id(entry.weights):
        raise UserError(
            f"weights: must be an existing path.\n  value: {entry.weights!r}\n"
            "  Give a path relative to the zoo file, org/name of a hub repository, random, or none."
        )
    pinned = f"{entry.weights}@{entry.revision or 'main'}"
    if pinned not in commits:
        commits[pinned] = commit_of(entry.weights, entry.revision)
    commit = commits[pinned]
    origin = None if entry.spec else fetch(entry.weights, weights=False, revision=commit)
    return ModelInputs(
        _spec(zoo, name, entry, origin), entry.weights, f"hub:{entry.weights}@{commit}", commit
    )


def _spec(zoo: Zoo, name: str, entry: ModelEntry, origin: Path | None) -> Model:
    """Return the spec that an entry names; without a name, the checkpoint's, or else the preset of the model's name."""
    if entry.spec is None and origin is not None:
        from zoo.configs.importing import import_spec

        if entry.set:
            raise UserError(
                "set: applies only to a named spec.\n"
                "  Import the checkpoint with zoo import, and give the file as spec."
            )
        return import_spec(origin, name=name)
    reference = entry.spec or name
    if reference.endswith(SUFFIXES):
        reference = str(zoo.place(reference))
    return load(reference, entry.set)
