"""Packages of the registry that carry what tests need: published weights, texts, speech."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest


def fetched(project: str, place: Path, *options: str) -> Path:
    """The file of a package, such as ``name==1.0``, in a directory of its own; skips without the registry."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        *options,
        project,
        "--dest",
        str(place),
    ]
    result = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if result.returncode:
        pytest.skip(f"{project} cannot be fetched: {result.stderr.strip().splitlines()[-1]}")
    (found,) = (path for path in place.iterdir() if path.is_file())
    return found


def unpacked(project: str, place: Path) -> Path:
    """The files of a wheel, in a directory of its own; skips without the registry."""
    with zipfile.ZipFile(fetched(project, place)) as archive:
        archive.extractall(place)
    return place
