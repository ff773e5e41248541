"""One build, independent of where it runs: its inputs as plain data, and its outcome."""

from __future__ import annotations

import json
import os
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exporters.making.cache import Cache
from exporters.making.plan import MakeStep
from specs.files.zoo_file import parse_size
from specs.forms.resolved import resolved
from zoo.core.progress import Progress, Stage


@dataclass(frozen=True)
class Job:
    """A build of one artefact into its entry of the cache; picklable, and JSON data.

    ``spec`` is a resolved spec, ``commit`` the commit of weights on the hub, ``made_from`` the recorded inputs of the
    artefact. ``adapters`` are sources and commits by name. ``cpus``, ``memory`` (bytes; 0 for none) and ``gpus`` are its reservations.
    """

    name: str
    key: str
    cache: str
    spec: Mapping[str, Any]
    weights: str
    commit: str | None
    options: Mapping[str, Any]
    made_from: Mapping[str, Any]
    adapters: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)
    cpus: int = 1
    memory: int = 0
    gpus: int = 0


@dataclass(frozen=True)
class JobResult:
    """The outcome of a job; ``error`` is empty where the artefact is in the cache."""

    name: str
    error: str = ""
    seconds: float = 0.0

    @property
    def built(self) -> bool:
        """Return whether the artefact is in the cache."""
        return not self.error


def job_of(step: MakeStep, cache: Cache, root: Path) -> Job:
    """Return the job that builds the artefact of a step; ``root`` is the directory of the zoo file."""
    assert step.model is not None
    assert step.inputs is not None
    artefact, model = step.artefact, step.model
    options = artefact.options.model_dump(mode="json", exclude={"name"})
    if options["calibrate"] is not None:
        options["calibrate"] = str((root / options["calibrate"]).absolute())
    is_path = model.commit is None and model.weights not in ("random", "none")
    return Job(
        artefact.name,
        step.inputs.key,
        str(cache.root.absolute()),
        resolved(model.spec),
        str(Path(model.weights).absolute()) if is_path else model.weights,
        model.commit,
        {**options, "seed": artefact.entry.seed},
        step.inputs.as_dict(),
        {name: (adapter.source, adapter.commit) for name, adapter in model.adapters.items()},
        artefact.resources.cpus,
        parse_size(artefact.resources.memory) if artefact.resources.memory else 0,
        artefact.resources.gpus,
    )


def outcome_of(job: Job, progress: Progress = lambda stage: None) -> JobResult:
    """Run a job and return its outcome, which includes errors of any kind."""
    from specs.base.errors import UserError, reason_of

    began = time.monotonic()
    try:
        _build(job, progress)
    except UserError as error:
        return JobResult(job.name, str(error), time.monotonic() - began)
    except OSError as error:
        reason = error.strerror or reason_of(error)
        prefix = f"{error.filename}: " if error.filename else ""
        return JobResult(job.name, f"{prefix}{reason}", time.monotonic() - began)
    except Exception:  # a failed job must not stop the others
        return JobResult(job.name, traceback.format_exc(), time.monotonic() - began)
    return JobResult(job.name, "", time.monotonic() - began)


def _build(job: Job, progress: Progress) -> None:
    from exporters.export import export
    from exporters.steps.options import ExportOptions
    from specs.base.errors import UserError
    from specs.language.document import Document
    from specs.language.named_blocks import with_named_blocks
    from specs.language.validation import validate
    from zoo.files.json_values import read_object
    from zoo.files.ownership import BUILD
    from zoo.files.whole import write_file
    from zoo.weights.hub import fetch, located_adapter

    cache = Cache(Path(job.cache))
    if cache.has(job.key):  # built by another process meanwhile
        return
    weights = job.weights
    if job.commit is not None:
        progress(Stage("fetch weights"))
        weights = str(fetch(weights, weights=True, revision=job.commit))
    adapters = tuple(
        f"{name}={located_adapter(source, revision=commit)}"
        for name, (source, commit) in job.adapters.items()
    )
    entry = cache.entry(job.key)
    entry.parent.mkdir(parents=True, exist_ok=True)  # other processes may do so at the same time
    spec = validate(with_named_blocks(Document(dict(job.spec))))
    export(spec, entry, ExportOptions(**job.options, weights=weights, adapters=adapters), progress)
    build = read_object(entry / BUILD, UserError, entry)
    write_file(entry / BUILD, (json.dumps({**build, "made_from": job.made_from}, indent=2) + "\n").encode())
    os.utime(entry)
