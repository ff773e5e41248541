"""Small zoos on disk, and an executor in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from exporters.making.artefacts import Zoo, read_zoo
from exporters.making.cache import Cache
from exporters.making.executors.executor import Executor, Tell
from exporters.making.job import Job, JobResult, outcome_of
from exporters.making.make import Made
from exporters.making.make import make as make_artefacts
from exporters.making.plan import MakePlan, make_plan

SPEC = """\
name: {name}
architecture: encoder
vocab_size: 40
d_model: 16
context_length: 32
position: {{kind: learned}}
encoder:
  layers: 1
  block:
    kind: pre_norm
    norm: {{kind: layer_norm}}
    attention: {{kind: multi_head, heads: 2}}
    feed_forward: {{kind: mlp, hidden: {hidden}, activation: gelu}}
head: {{kind: none}}
"""

LIMIT = 10**9
LOCK = "zoo.lock"


class Here:
    """Runs jobs in this process, one after another; ``ran`` has their names."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def run(self, jobs: Sequence[Job], tell: Tell) -> Iterator[JobResult]:
        for job in jobs:
            self.ran.append(job.name)
            yield outcome_of(job)


def write_spec(directory: Path, name: str, hidden: int = 24) -> None:
    (directory / f"{name}.yaml").write_text(SPEC.format(name=name, hidden=hidden))


def write_zoo(directory: Path, text: str) -> Zoo:
    (directory / "zoo.yaml").write_text(text)
    return read_zoo(directory / "zoo.yaml")


def two_models(directory: Path) -> Zoo:
    """Two models, one with two artefacts; nothing is verified, so that a build takes moments."""
    for name in ("a", "b"):
        write_spec(directory, name)
    return write_zoo(
        directory,
        "defaults: {options: {verify: false}}\n"
        "models:\n"
        "  a: {spec: a.yaml, matrix: {precision: [fp32, fp16]}}\n"
        "  b: {spec: b.yaml}\n",
    )


def plan_of(zoo: Zoo, *names: str) -> MakePlan:
    """The plan of a zoo file as it is now, with the cache beside it."""
    return make_plan(read_zoo(zoo.path), names, cache_of(zoo))


def cache_of(zoo: Zoo) -> Cache:
    return Cache(zoo.root / "cache")


def make(zoo: Zoo, *names: str, executor: Executor | None = None) -> list[Made]:
    plan = plan_of(zoo, *names)
    return list(make_artefacts(plan, cache_of(zoo), executor or Here(), lambda name, stage: None, LIMIT))


def states(plan: MakePlan) -> dict[str, str]:
    return {step.wanted.name: step.state for step in plan.steps}
