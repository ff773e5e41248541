"""Where builds run: processes that are killed, a Ray cluster that loses a node, and a Slurm cluster of one node."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from exporters.making.artefacts import read_zoo
from exporters.making.cache import Cache
from exporters.making.executors import executor_of
from exporters.making.executors.processes import Processes
from exporters.making.job import JobResult, job_of
from exporters.making.plan import make_plan
from specs.base.errors import UserError
from tests.cli.process import ZOO, environment, wait_for_end
from tests.exporters.making.slurm_cluster import queued, slurm_cluster
from tests.exporters.making.zoos import Here, make, plan_of, states, two_models
from zoo.core.progress import Stage


def children(process: int) -> list[int]:
    """The worker processes of a process."""
    found = subprocess.run(
        ["pgrep", "-P", str(process), "-f", "exporters.making.worker"], capture_output=True
    )
    return [int(word) for word in found.stdout.split()]


@pytest.mark.slow
def test_worker_processes_build_equal_artefacts(tmp_path: Path) -> None:
    zoo = two_models(tmp_path)
    stages: list[str] = []
    plan = plan_of(zoo)
    jobs = [job_of(step, Cache(tmp_path / "cache"), tmp_path) for step in plan.steps]
    outcomes = list(Processes(2).run(jobs, lambda name, stage: stages.append(stage.name)))
    assert {each.name: each.error for each in outcomes} == dict.fromkeys(states(plan), "")
    assert stages
    assert [each.state for each in make(zoo)] == ["restored"] * 3
    assert children(os.getpid()) == []


DIES = """
import os, signal, sys

def die(event, arguments):
    if event == "os.mkdir" and "{key}.partial-" in os.fsdecode(arguments[0]):
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(die)
"""
"""A process that runs this when it starts is killed as soon as it writes an artefact of a key."""


@pytest.mark.slow
def test_a_process_that_dies_takes_only_its_own_job_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zoo = two_models(tmp_path)
    plan = plan_of(zoo)
    jobs = [job_of(step, Cache(tmp_path / "cache"), tmp_path) for step in plan.steps]
    (key,) = (job.key for job in jobs if job.name == "a/portable-fp16")
    (tmp_path / "started").mkdir()
    (tmp_path / "started" / "sitecustomize.py").write_text(DIES.format(key=key))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'started'}{os.pathsep}{Path.cwd()}")
    outcomes: dict[str, JobResult] = {
        each.name: each for each in Processes(1).run(jobs, lambda name, stage: None)
    }
    assert "The build process ended by SIGKILL (out of memory?)." in outcomes["a/portable-fp16"].error
    assert outcomes["a/portable-fp32"].built
    assert outcomes["b/portable-fp32"].built
    assert sorted(each.state for each in make(zoo, executor=Here())) == ["built", "restored", "restored"]


@pytest.mark.slow
def test_a_killed_run_resumes(tmp_path: Path) -> None:
    two_models(tmp_path)
    settings = environment(ZOO_CACHE_DIR=str(tmp_path / "cache"))
    run = subprocess.Popen([*ZOO, "make", str(tmp_path)], env=settings, stderr=subprocess.PIPE, text=True)
    assert run.stderr is not None
    assert "[1/3]" in run.stderr.readline()
    workers = children(run.pid)
    run.kill()
    run.wait()
    for worker in workers:  # a build that was running ends, and its process with it
        wait_for_end(worker)
    plan = make_plan(read_zoo(tmp_path / "zoo.yaml"), [], Cache(tmp_path / "cache"))
    assert states(plan)["a/portable-fp32"] == "current"
    second = subprocess.run([*ZOO, "make", str(tmp_path)], env=settings, capture_output=True, text=True)
    assert second.returncode == 0, second.stderr
    assert "already up to date" in second.stdout
    assert not list((tmp_path / "build").rglob("*.partial-*"))


@pytest.mark.slow
def test_a_ray_cluster_that_loses_a_node_loses_no_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    two_models(tmp_path)
    zoo, cache = read_zoo(tmp_path / "zoo.yaml"), Cache(tmp_path / "cache")
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    memory = 80 * 2**20
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": memory})
    lost = cluster.add_node(num_cpus=1, object_store_memory=memory)
    try:
        ray.init(address=cluster.address, log_to_driver=False)
        assert len(ray.nodes()) == 2
        plan = make_plan(zoo, [], cache)
        jobs = [job_of(step, cache, tmp_path) for step in plan.steps]
        timer = threading.Timer(4, lambda: cluster.remove_node(lost, allow_graceful=False))
        timer.start()
        outcomes = list(executor_of("ray", 1).run(jobs, lambda name, stage: None))
        timer.join()
        assert sorted(each.name for each in outcomes if each.built) == sorted(states(plan))
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert [each.state for each in make(zoo)] == ["restored"] * 3


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with slurm_cluster(tmp_path_factory.mktemp("slurm")) as settings:
        yield settings


@pytest.mark.slow
def test_a_slurm_cluster_builds_the_same(tmp_path: Path, slurm: dict[str, str]) -> None:
    zoo = two_models(tmp_path)
    run = subprocess.run(
        [*ZOO, "make", str(tmp_path), "--executor", "slurm"],
        env=environment(ZOO_CACHE_DIR=str(tmp_path / "cache"), **slurm),
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert states(plan_of(zoo)) == dict.fromkeys(states(plan_of(zoo)), "current")
    assert queued(slurm) == []


@pytest.mark.slow
def test_a_slurm_job_that_ends_or_asks_too_much_takes_only_itself_along(
    tmp_path: Path, slurm: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in slurm.items():
        monkeypatch.setenv(name, value)
    jobs = [job_of(step, Cache(tmp_path / "cache"), tmp_path) for step in plan_of(two_models(tmp_path)).steps]
    cancelled, large, built = (
        replace(job, cpus=cpus, memory=memory)
        for job, cpus, memory in zip(jobs, (2, 1, 1), (0, 10**12, 10**9), strict=True)
    )

    def cancel(name: str, stage: Stage) -> None:
        subprocess.run(["scancel", "--name", cancelled.name], check=True) if name == cancelled.name else None

    outcomes = {each.name: each for each in executor_of("slurm", 1).run([cancelled, large, built], cancel)}
    assert "CANCELLED" in outcomes[cancelled.name].error
    assert "Requested node configuration is not available" in outcomes[large.name].error
    assert outcomes[built.name].built


@pytest.mark.slow
def test_a_stopped_run_leaves_no_slurm_job_behind(tmp_path: Path, slurm: dict[str, str]) -> None:
    two_models(tmp_path)
    settings = environment(ZOO_CACHE_DIR=str(tmp_path / "cache"), **slurm)
    command = [*ZOO, "make", str(tmp_path), "--executor", "slurm"]
    run = subprocess.Popen(command, env=settings, stderr=subprocess.PIPE, text=True)
    assert run.stderr is not None
    assert "[1/3]" in run.stderr.readline()
    assert queued(slurm)
    run.send_signal(signal.SIGINT)
    run.wait()
    assert queued(slurm) == []


def test_executors_that_are_not_there_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"Executor 'rey' is unknown.\n  Did you mean 'ray'"):
        executor_of("rey", 1)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match=r"no Slurm here.*\n.*use executor local"):
        list(executor_of("slurm", 1).run([], lambda name, stage: None))
