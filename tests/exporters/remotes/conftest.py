"""Exports to publish, keys to sign them with, and a registry."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

import zoo
from tests.zoo.tiny import bert

PEM = serialization.Encoding.PEM
Copy = Callable[[str], Path]


@pytest.fixture(scope="session")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Exports of a small encoder: ``first``, ``other`` with other weights for another target, and ``unverified``."""
    place = tmp_path_factory.mktemp("exports")
    variants: dict[str, dict[str, Any]] = {
        "first": {},
        "other": {"seed": 1, "target": "cpu"},
        "unverified": {"verify": False},
    }
    for name, options in variants.items():
        zoo.export(bert(), place / name, **options)
    return place


@pytest.fixture
def copy(exports: Path, tmp_path: Path) -> Copy:
    """Makes a copy of an export by name, which a test may change."""
    return lambda name: Path(shutil.copytree(exports / name, tmp_path / "copies" / name))


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A private key; its public key is beside it, as ``public.pem``."""
    return write_keys(tmp_path / "keys")


def write_keys(place: Path, curve: ec.EllipticCurve | None = None) -> Path:
    """Write a new pair of keys; gives the path of the private one."""
    place.mkdir()
    made = ec.generate_private_key(curve or ec.SECP256R1())
    plain = serialization.NoEncryption()
    (place / "key.pem").write_bytes(made.private_bytes(PEM, serialization.PrivateFormat.PKCS8, plain))
    public = made.public_key().public_bytes(PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (place / "public.pem").write_bytes(public)
    return place / "key.pem"


@pytest.fixture(scope="session")
def registry_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory in which the registry keeps its files."""
    return tmp_path_factory.mktemp("registry")


@pytest.fixture(scope="session")
def registry(registry_place: Path) -> Iterator[str]:
    """The host and port of a real OCI registry, that of Debian's package docker-registry."""
    program = shutil.which("docker-registry")
    if program is None:
        pytest.skip("no OCI registry to test with: apt-get install docker-registry")
    place = registry_place
    for _ in range(5):  # another process may take a free port first
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            host = f"127.0.0.1:{free.getsockname()[1]}"
        (place / "config.yml").write_text(
            f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {place / 'blobs'}}}}}\nhttp: {{addr: '{host}'}}\n"
        )
        with (place / "log").open("wb") as log:
            process = subprocess.Popen([program, "serve", place / "config.yml"], stdout=log, stderr=log)
        if _listens(process, place / "log"):
            break
    else:
        raise AssertionError((place / "log").read_text())
    try:
        yield host
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _listens(process: subprocess.Popen[bytes], log: Path) -> bool:
    """Whether a registry comes to listen, as its log says; otherwise it has ended."""
    while process.poll() is None:
        if "listening on" in log.read_text():
            return True
        time.sleep(0.05)
    return False
