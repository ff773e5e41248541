"""The models of a zoo file: their specs, and the location of their weights."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from exporters.making.artefacts import Zoo
from exporters.making.digests import FileDigests
from exporters.making.inputs import digest_of
from specs.base.errors import UserError, option_name
from specs.files.export_options import adapter_sources
from specs.files.zoo_file import ModelEntry
from specs.forms.resolved import resolved
from specs.language.reference import SUFFIXES, hub_file, is_hub_id, preset_file
from specs.model.model import Model
from zoo.configs.named_model import model_kind, named_model
from zoo.weights.hub import HubError, commit_of, fetch


@dataclass(frozen=True)
class AdapterInputs:
    """An adapter: a path, or a repository at a ``commit``; ``identity`` is equal for equal contents."""

    source: str
    identity: str
    commit: str | None = None


@dataclass(frozen=True)
class ModelInputs:
    """The spec of a model, and its weights as an export names them: random, none, a path, or a repository at a ``commit``.

    ``identity`` is equal for weights with equal contents. ``adapters`` are those of each export, by name.
    """

    spec: Model
    weights: str
    identity: str
    commit: str | None = None
    adapters: Mapping[str, AdapterInputs] = field(default_factory=dict)

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
        inputs = _model_inputs(zoo, name, entry, digests, commits)
        return replace(inputs, adapters=_adapters(zoo, entry, digests, commits))
    except UserError as error:
        kind = HubError if isinstance(error, HubError) else UserError
        message = error.text.replace(option_name("assignments"), "set")  # its key in the file
        raise kind(f"{zoo.path}: models.{name}: {message}") from None


def _model_inputs(
    zoo: Zoo, name: str, entry: ModelEntry, digests: FileDigests, commits: dict[str, str]
) -> ModelInputs:
    weights = _weights(zoo, entry)
    if weights in ("random", "none"):
        identity = f"random, seed {entry.seed}" if weights == "random" else "none"
        return ModelInputs(_spec(zoo, name, entry, None, commits), weights, identity)
    path = zoo.place(weights)
    if os.path.exists(path):
        return ModelInputs(_spec(zoo, name, entry, weights, commits), str(path), f"files:{digests.of(path)}")
    repository, _ = hub_file(weights)
    if not repository:
        raise UserError(
            f"weights: must be an existing path.\n  value: {weights!r}\n"
            "  Give a path relative to the zoo file, org/name of a hub repository, random, or none."
        )
    commit = _commit(repository, entry, commits)
    return ModelInputs(_spec(zoo, name, entry, weights, commits), weights, f"hub:{weights}@{commit}", commit)


def _adapters(
    zoo: Zoo, entry: ModelEntry, digests: FileDigests, commits: dict[str, str]
) -> dict[str, AdapterInputs]:
    """Return the adapters of an entry, whose paths are relative to the zoo file."""
    adapters = {}
    for name, source in adapter_sources(entry.adapters).items():
        path = zoo.place(source)
        if os.path.exists(path):
            adapters[name] = AdapterInputs(str(path.absolute()), f"files:{digests.of(path)}")
        elif is_hub_id(source):
            commit = _commit_at(source, None, commits)
            adapters[name] = AdapterInputs(source, f"hub:{source}@{commit}", commit)
        else:
            raise UserError(
                f"adapters: must be existing directories.\n  value: {name}={source}\n"
                "  Give a path relative to the zoo file, or org/name of a hub repository."
            )
    return adapters


def _weights(zoo: Zoo, entry: ModelEntry) -> str:
    """Return the weights of an entry, or the weights of the checkpoint that is its spec."""
    if entry.spec is None or "weights" in entry.model_fields_set or preset_file(entry.spec):
        return entry.weights
    path = str(zoo.place(entry.spec))
    is_checkpoint = model_kind(path) == "checkpoint" if os.path.exists(path) else hub_file(entry.spec)[0]
    return entry.spec if is_checkpoint else entry.weights


def _commit(repository: str, entry: ModelEntry, commits: dict[str, str]) -> str:
    """Return the commit of a hub repository at the entry's revision."""
    return _commit_at(repository, entry.revision, commits)


def _commit_at(repository: str, revision: str | None, commits: dict[str, str]) -> str:
    pinned = f"{repository}@{revision or 'main'}"
    if pinned not in commits:
        commits[pinned] = commit_of(repository, revision)
    return commits[pinned]


def _spec(zoo: Zoo, name: str, entry: ModelEntry, weights: str | None, commits: dict[str, str]) -> Model:
    """Return the spec that an entry names; without one, the spec of its weights, or else the preset of the model's name."""
    reference = entry.spec or weights or name
    own_name = name if entry.spec is None and weights is not None else None
    path = str(zoo.place(reference))
    if preset_file(reference) is None and (reference.endswith(SUFFIXES) or os.path.exists(path)):
        reference = path
    elif repository := hub_file(reference)[0]:
        commit = _commit(repository, entry, commits)
        reference = str(fetch(reference, weights=False, revision=commit))
    return named_model(reference, entry.set, own_name).spec
