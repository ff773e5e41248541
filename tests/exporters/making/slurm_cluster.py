"""A real Slurm cluster of one node: the controller and the node's daemon of Debian's package slurm-wlm, as this user."""

from __future__ import annotations

import getpass
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

_CONFIG = """\
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
MpiDefault=none
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=2000
PartitionName=all Nodes=ALL Default=YES State=UP
"""


@contextmanager
def slurm_cluster(directory: Path) -> Iterator[dict[str, str]]:
    """Run a cluster in a directory, and yield the environment of its clients; skips a test on a machine without Slurm."""
    # The node's daemon lies in /usr/sbin, which users have not always in their PATH.
    wanted = ("slurmctld", "slurmd")
    programs = list(filter(None, (shutil.which(name, path="/usr/sbin:/usr/bin") for name in wanted)))
    if len(programs) < len(wanted):
        pytest.skip("no Slurm to test with: apt-get install slurm-wlm")
    for name in ("state", "spool"):
        (directory / name).mkdir()
    ports = [_free_port() for _ in programs]
    config = directory / "slurm.conf"
    config.write_text(
        _CONFIG.format(
            host=socket.gethostname().partition(".")[0],
            controller=ports[0],
            node=ports[1],
            user=getpass.getuser(),
            directory=directory,
        )
    )
    environment = {"SLURM_CONF": str(config)}
    with ExitStack() as ending:
        log = ending.enter_context((directory / "log").open("wb"))
        for program in programs:
            process = subprocess.Popen([program, "-D", "-f", str(config)], stdout=log, stderr=log)
            ending.callback(process.wait)
            ending.callback(process.terminate)
        _wait_until_idle(environment, directory / "log")
        yield environment


def queued(environment: dict[str, str]) -> list[str]:
    """The names of the jobs that wait or run."""
    done = subprocess.run(
        ["squeue", "--noheader", "--format=%j"], env=_with_path(environment), capture_output=True, text=True
    )
    return done.stdout.split()


def _wait_until_idle(environment: dict[str, str], log: Path) -> None:
    for _ in range(100):
        done = subprocess.run(
            ["sinfo", "--noheader", "--format=%t"],
            env=_with_path(environment),
            capture_output=True,
            text=True,
        )
        if done.stdout.strip() == "idle":
            return
        time.sleep(0.2)
    raise AssertionError(log.read_text())


def _with_path(environment: dict[str, str]) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", **environment}


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
