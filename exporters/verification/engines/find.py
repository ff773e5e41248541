"""The location of an engine on this machine: a separate environment, or the running interpreter."""

from __future__ import annotations

import os
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

from exporters.verification.engines.engine import Engine
from exporters.verification.engines.table import ENGINES, RUNTIME_VERSION, engine_named

VARIABLE = "ZOO_ENGINES"
"""The environment variable that names the folder of environments."""


def _program(environment: Path, name: str) -> Path:
    """A program of an environment."""
    return environment / "Scripts" / f"{name}.exe" if os.name == "nt" else environment / "bin" / name


def engines_folder() -> Path:
    """The folder with one environment per engine, named after it."""
    if folder := os.environ.get(VARIABLE):
        return Path(folder).expanduser()
    if os.name == "nt":
        home = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        home = Path.home() / "Library" / "Application Support"
    else:
        home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "zoo" / "engines"


def interpreter_of(engine: Engine) -> Path | None:
    """The interpreter that has an engine's package: its own environment's, or the running one; None if neither has it."""
    own = _program(engines_folder() / engine.name, engine.program)
    if own.is_file():
        return own
    return Path(sys.executable) if engine.module and find_spec(engine.module) else None


def engines_here() -> list[Engine]:
    """All engines of the table, and every version of ONNX Runtime that has an environment."""
    folder = engines_folder()
    names = (entry.name for entry in folder.iterdir()) if folder.is_dir() else ()
    versions = sorted(
        (match[1] for match in map(RUNTIME_VERSION.fullmatch, names) if match),
        key=lambda version: [*map(int, version.split("."))],
    )
    return [*ENGINES.values(), *(engine_named(f"onnxruntime-{version}") for version in versions)]


def installation(engine: Engine) -> list[str]:
    """The commands that install an engine in a separate environment."""
    environment = engines_folder() / engine.name
    python, npm, folder = (
        shlex.quote(str(path))
        for path in (_program(environment, "python"), _program(environment, "npm"), environment)
    )
    commands = [
        f"{shlex.quote(sys.executable)} -m venv {folder}",
        f"{python} -m pip install {shlex.join(engine.packages)}",
    ]
    if engine.node_packages:
        commands.append(
            f"{npm} install --ignore-scripts --prefix {folder} {shlex.join(engine.node_packages)}"
        )
    return commands
