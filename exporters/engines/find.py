"""Where an engine is on this machine: an environment of its own, or the running interpreter."""

from __future__ import annotations

import os
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

from exporters.engines.engine import Engine
from exporters.engines.table import ENGINES, RUNTIME_VERSION, engine_named

PLACE = "ZOO_ENGINES"
"""The environment variable that names the folder of environments."""

_PYTHON = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")


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
    own = engines_folder().joinpath(engine.name, *_PYTHON)
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
    python = shlex.quote(str(place.joinpath(*_PYTHON)))
    return [
        f"{shlex.quote(sys.executable)} -m venv {shlex.quote(str(place))}",
        f"{python} -m pip install {' '.join(engine.packages)}",
    ]
