"""Where an engine is on this machine: an environment of its own, or the running interpreter."""

from __future__ import annotations

import os
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

from exporters.verification.engines.engine import Engine
from exporters.verification.engines.table import ENGINES, RUNTIME_VERSION, engine_named

PLACE = "ZOO_ENGINES"
"""The environment variable that names the folder of environments."""


def _program(place: Path, name: str) -> Path:
    """A program of an environment."""
    return place / "Scripts" / f"{name}.exe" if os.name == "nt" else place / "bin" / name


def engines_folder() -> Path:
    """The folder that holds one environment per engine, each under its name."""
    if stated := os.environ.get(PLACE):
        return Path(stated).expanduser()
    if os.name == "nt":
        home = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        home = Path.home() / "Library" / "Application Support"
    else:
        home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "zoo" / "engines"


def interpreter_of(engine: Engine) -> Path | None:
    """The interpreter that has an engine's package: that of its own environment, or the running one; None for neither."""
    own = _program(engines_folder() / engine.name, engine.program)
    if own.is_file():
        return own
    return Path(sys.executable) if engine.module and find_spec(engine.module) else None


def engines_here() -> list[Engine]:
    """Every engine of the table, and every version of ONNX Runtime that has an environment."""
    folder = engines_folder()
    names = (entry.name for entry in folder.iterdir()) if folder.is_dir() else ()
    versions = sorted(
        (found[1] for found in map(RUNTIME_VERSION.fullmatch, names) if found),
        key=lambda version: [*map(int, version.split("."))],
    )
    return [*ENGINES.values(), *(engine_named(f"onnxruntime-{version}") for version in versions)]


def installation(engine: Engine) -> list[str]:
    """The commands that install an engine in an environment of its own."""
    place = engines_folder() / engine.name
    python, npm, folder = (
        shlex.quote(str(each)) for each in (_program(place, "python"), _program(place, "npm"), place)
    )
    commands = [
        f"{shlex.quote(sys.executable)} -m venv {folder}",
        f"{python} -m pip install {' '.join(engine.packages)}",
    ]
    if engine.node_packages:
        commands.append(f"{npm} install --ignore-scripts --prefix {folder} {' '.join(engine.node_packages)}")
    return commands
