"""The plan of `zoo make`: which artefacts are current, cached or to be built, and why."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from exporters.making.artefacts import ArtefactRequest, Zoo
from exporters.making.cache import Cache, built_with
from exporters.making.digests import FileDigests
from exporters.making.inputs import Inputs, tool_versions
from exporters.making.lock import Lock
from exporters.making.models import ModelInputs, model_inputs
from specs.base.errors import CombinedError, UserError, reason_of
from specs.files.zoo_file import ArtefactEntry
from specs.language.load import load
from zoo.files.ownership import MANIFEST
from zoo.record.changes import spec_changes
from zoo.record.integrity import check_integrity
from zoo.record.manifest import read_record
from zoo.weights.hub import HubError

State = Literal["current", "cached", "build", "failed"]

_LISTED = 3


@dataclass(frozen=True)
class MakeStep:
    """One artefact and its state.

    ``why`` lists the changes since the artefact was built; a ``failed`` one cannot be built, and ``why`` is the error.
    """

    artefact: ArtefactRequest
    state: State
    why: str
    model: ModelInputs | None = None
    inputs: Inputs | None = None

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "artefact": self.artefact.name,
            "directory": str(self.artefact.directory),
            "state": self.state,
            "why": self.why,
            "key": None if self.inputs is None else self.inputs.key,
        }


@dataclass(frozen=True)
class MakePlan:
    """The steps for the chosen artefacts of a zoo, and the lock that they are based on."""

    zoo: Zoo
    steps: tuple[MakeStep, ...]
    lock: Lock
    repositories: Mapping[str, str] = field(default_factory=dict)

    @property
    def stale(self) -> tuple[MakeStep, ...]:
        """Return the steps whose artefact is not current."""
        return tuple(step for step in self.steps if step.state != "current")

    @property
    def unlocked(self) -> tuple[MakeStep, ...]:
        """Return the steps whose artefact is not current, and not recorded as artefact in the lock file where it is absent.

        Artefacts that were built elsewhere are up to date if the lock records them.
        """
        return tuple(step for step in self.stale if not self._is_locked(step))

    def _is_locked(self, step: MakeStep) -> bool:
        entry = self.lock.artefacts.get(step.artefact.name, {})
        is_present = step.artefact.directory.is_dir()
        return not is_present and step.inputs is not None and entry.get("key") == step.inputs.key

    def locked(self, made: Collection[str]) -> Lock:
        """Return the lock after the steps of the named artefacts are done; entries of others that are not current remain."""
        names = {artefact.name for artefact in self.zoo.artefacts}
        artefacts = {name: entry for name, entry in self.lock.artefacts.items() if name in names}
        weights = {name: digest for name, digest in self.lock.weights.items() if name in self.zoo.file.models}
        for step in self.steps:
            if step.inputs is None:
                continue
            weights[step.artefact.model] = step.inputs.weights
            if step.state == "current" or step.artefact.name in made:
                record = read_record(step.artefact.directory)
                if record.build is not None:
                    artefacts[step.artefact.name] = {"key": step.inputs.key, "export": record.build.export}
        return Lock({**self.lock.repositories, **self.repositories}, weights, artefacts)


def make_plan(zoo: Zoo, names: Sequence[str], cache: Cache, *, update: bool = False) -> MakePlan:
    """Return the plan for the named models, groups or artefacts of a zoo (default: all).

    Hub repositories stay at the commits in the lock file, or move to the newest of their revision with ``update``; a
    repository that cannot be reached fails its steps only. Raises :class:`specs.base.errors.UserError` for unknown names and a damaged
    lock file, and :class:`specs.base.errors.CombinedError` with every fault of the chosen models and artefacts.
    """
    chosen = zoo.chosen(names)
    lock = Lock.read(zoo.lock)
    digests, known = FileDigests(cache.memory), {} if update else dict(lock.repositories)
    models: dict[str, ModelInputs | UserError] = {}
    for name in dict.fromkeys(artefact.model for artefact in chosen):
        try:
            models[name] = model_inputs(zoo, name, digests, known)
        except UserError as error:
            models[name] = error
    faults = [
        fault for fault in models.values() if isinstance(fault, UserError) and not isinstance(fault, HubError)
    ]
    steps = []
    for artefact in chosen:
        model = models[artefact.model]
        if isinstance(model, UserError):
            steps.append(MakeStep(artefact, "failed", str(model)))
            continue
        try:
            steps.append(_step(zoo, artefact, model, digests, cache, lock))
        except UserError as error:
            faults.append(UserError(f"{zoo.path}: {artefact.name}: {error}"))
    built = {step.artefact.model: step.model for step in steps if step.state == "build" and step.model}
    for name, model in built.items():
        for key, check in (("weights", _check_files), ("adapters", _check_adapters)):
            try:
                check(model)
            except UserError as error:
                faults.append(UserError(f"{zoo.path}: models.{name}: {key}: {error}"))
    if faults:
        raise CombinedError(faults)
    digests.save()
    return MakePlan(zoo, tuple(steps), lock, known)


def _step(
    zoo: Zoo, artefact: ArtefactRequest, model: ModelInputs, digests: FileDigests, cache: Cache, lock: Lock
) -> MakeStep:
    """The step of an artefact.  Raises :class:`specs.base.errors.UserError` for options that no export takes."""
    inputs = _inputs(zoo, artefact, model, digests)
    why = _stale(artefact.directory, inputs, model, digests, lock.artefacts.get(artefact.name, {}))
    if not why:
        return MakeStep(artefact, "current", "", model, inputs)
    step = MakeStep(artefact, "cached" if cache.has(inputs.key) else "build", why, model, inputs)
    if step.state == "build":
        _check_options(artefact, model)
    return step


def _check_options(artefact: ArtefactRequest, model: ModelInputs) -> None:
    """Raise :class:`specs.base.errors.UserError` for options that no export takes."""
    from exporters.steps.adapters import check_options
    from exporters.steps.options import ExportOptions
    from exporters.steps.preconditions import check_stated

    entry, values = artefact.entry, artefact.options.model_dump(exclude={"name"})
    options = ExportOptions(**values, weights=model.weights, adapters=entry.adapters, seed=entry.seed)
    check_options(options)
    check_stated(model.spec, options)


def _check_files(model: ModelInputs) -> None:
    """Raise :class:`specs.base.errors.UserError` for damaged files beside weights on this machine."""
    from zoo.checkpoints.carried import check_files

    if model.commit is None and model.weights not in ("random", "none"):
        check_files(Path(model.weights))


def _check_adapters(model: ModelInputs) -> None:
    """Raise :class:`specs.base.errors.UserError` for adapters on this machine that are damaged or, beside their base, fit another one."""
    from zoo.builder import assemble
    from zoo.checkpoints.low_rank import low_rank_pairs
    from zoo.checkpoints.open_checkpoint import opened
    from zoo.weights.lora import LoraAdapter

    directories = [adapter.source for adapter in model.adapters.values() if adapter.commit is None]
    adapters = [LoraAdapter.open(Path(source)) for source in directories]
    if adapters and model.commit is None:
        base = assemble(model.spec)
        files, names = opened(model.weights, base, model.spec)
        for adapter in adapters:
            low_rank_pairs(adapter, files, names, base, model.spec)


def _inputs(zoo: Zoo, artefact: ArtefactRequest, model: ModelInputs, digests: FileDigests) -> Inputs:
    options = artefact.options.model_dump(mode="json")
    if isinstance(artefact.options, ArtefactEntry):
        options.pop("name")
    calibrate = options.pop("calibrate")
    if model.adapters:
        options["adapters"] = {name: adapter.identity for name, adapter in model.adapters.items()}
    return Inputs(
        model.spec_digest,
        model.identity,
        None if calibrate is None else digests.of(zoo.place(calibrate)),
        options,
        tool_versions(),
    )


def _stale(
    directory: Path, inputs: Inputs, model: ModelInputs, digests: FileDigests, entry: Mapping[str, str]
) -> str:
    """Return the reason why an artefact is not current; empty where it is.

    ``entry`` is what the lock file records of it.
    """
    made_from = built_with(directory)
    if not made_from:
        return "not built yet" if not directory.is_dir() else "not built by zoo make"
    if made_from.get("key") != inputs.key:
        changes = list(inputs.changes(made_from))
        if "spec" in changes:
            changes[changes.index("spec")] = _spec_changes(directory, model)
        more = f", and {len(changes) - _LISTED} more" if len(changes) > _LISTED else ""
        return "; ".join(changes[:_LISTED]) + more
    try:
        record = read_record(directory)
    except UserError as error:
        return reason_of(error)
    if record.build is None:
        return record.unproven
    locked = entry if entry.get("key") == inputs.key else {}
    if record.build.export != locked.get("export", record.build.export):
        return f"{MANIFEST} is not the one that the lock file records"
    changed = check_integrity(record, contents=False).changes
    if changed:
        return str(changed[0])
    edited = (name for name, file in record.files.items() if digests.of(directory / name) != file.sha256)
    return next((f"{name} has other contents than were recorded" for name in edited), "")


def _spec_changes(directory: Path, model: ModelInputs) -> str:
    """Return the changes of the spec since an artefact was built."""
    try:
        return spec_changes(load(directory / "spec.yaml"), model.spec)
    except UserError:
        return "spec"
