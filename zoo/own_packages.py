"""The packages ``cli``, ``exporters`` and ``specs`` beside this one, in projects that have packages of these names, too.

A process of zoo's own finds zoo's packages first.  ``import zoo`` in another program leaves that program's imports alone, and
names what is in the way.  As a script, this file starts a module of this installation.  It imports the standard library only.
"""

from __future__ import annotations

import re
import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The directory that holds the four packages."""

_OWN = ("cli", "exporters", "specs", "zoo")
_OF_LIBRARY = ("specs", "exporters")
"""The packages that ``import zoo`` needs beside itself."""


class OwnPackages:
    """Finds zoo's packages where this one is, whatever stands before them on ``sys.path``."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The place of a package of zoo's own; None for others."""
        return PathFinder.find_spec(name, [str(ROOT)]) if name in _OWN else None


def put_first() -> None:
    """Find zoo's packages first, and nothing in the working directory unless that holds them."""
    sys.meta_path.insert(0, OwnPackages)
    if _module_asked_for() and not sys.flags.safe_path and Path(sys.path[0] or ".").resolve() != ROOT:
        del sys.path[0]


def prepare() -> None:
    """Put zoo's packages first in the program ``zoo``; check them in any other.  Raises ImportError."""
    if _module_asked_for() == "zoo" or Path(sys.argv[0] if sys.argv else "").stem in ("zoo", "zoo-script"):
        put_first()
        return
    for name in _OF_LIBRARY:
        if (other := _in_the_way(name)) is not None:
            raise ImportError(
                f"zoo has a package named {name!r}, and another one is in its way: {other}\n"
                f"  Rename that one, or keep its directory off sys.path: run Python with -P, or in another directory. "
                f"The program (zoo, python -m zoo) runs anywhere.",
                name=name,
                path=str(other),
            )


def _module_asked_for() -> str:
    """The module of ``python -m``; empty where Python was started otherwise."""
    if sys.argv[:1] != ["-m"]:
        return ""
    words = iter(sys.orig_argv[1:])
    option = next((word for word in words if re.match("-[a-zA-Z]*m", word)), "")
    return re.sub("^-[a-zA-Z]*?m", "", option) or next(words, "")


def _in_the_way(name: str) -> Path | None:
    """The file that ``import`` finds in the place of a package of zoo's own."""
    loaded = sys.modules.get(name)
    spec = getattr(loaded, "__spec__", None) if loaded is not None else find_spec(name)
    places = [] if spec is None else [spec.origin, *(spec.submodule_search_locations or ())]
    file = getattr(loaded, "__file__", None) or next(filter(None, places), None)
    if file is None:
        return None
    return None if Path(file).resolve().parent in (ROOT, ROOT / name) else Path(file)


def command_of(module: str) -> list[str]:
    """The command that starts a module of this installation as a process, in any directory."""
    return [sys.executable, "-P", __file__, module]


if __name__ == "__main__":
    import runpy

    put_first()
    runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
