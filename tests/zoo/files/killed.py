"""Exports that are ended at their file events in turn; run as a program by test_killed.py.

Each is a process of its own, forked when everything is imported.  Two exports of different files replace each other, in a
directory with files of the user's; after each end one of the two has to stand there, whole, with all of those.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch

from exporters.export import export
from exporters.steps.options import ExportOptions
from tests.zoo.tiny import gpt2
from zoo.files import destination
from zoo.files.exchange import exchange

EVENTS = ("open", "os.", "shutil.", "fcntl.", "zoo.")
EXPORTS = {
    "onnx": ExportOptions(verify=False),
    "transformers-js": ExportOptions(verify=False, layout="transformers-js"),
}
THEIRS = {"README.md": b"mine", "onnx/notes": b"mine", "eval/deep/scores": b"mine", "spec.yaml.bak": b"mine"}
ENDS = {"kill": signal.SIGKILL, "interrupt": signal.SIGINT, "kill-in-two-steps": signal.SIGKILL}
EVERY = {"kill": 1, "interrupt": 3, "kill-in-two-steps": 3}
"""An export is ended at every event, or at one in so many."""


def main(place: Path, way: str) -> None:
    torch.set_num_threads(1)

    def announced(first: Path, second: Path) -> bool:
        sys.audit("zoo.exchange")
        return way != "kill-in-two-steps" and exchange(first, second)

    destination.exchange = announced  # type: ignore[attr-defined]
    whole = {}
    for layout, options in EXPORTS.items():
        export(gpt2(), place / layout, options)
        whole[layout] = {**contents(place / layout), **THEIRS}
    out = place / "out"
    export(gpt2(), out, EXPORTS["onnx"])
    for path, content in THEIRS.items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_bytes(content)
    standing, done, ends = "onnx", 0, 0
    beside = {"out", *EXPORTS}
    while done < 2:
        ends += EVERY[way]
        following = next(layout for layout in EXPORTS if layout != standing)
        finished = forked(out, EXPORTS[following], ends, ENDS[way])
        done = done + 1 if finished else 0
        if finished or way == "interrupt":
            assert set(os.listdir(place)) == beside, (ends, os.listdir(place))
        if way == "kill-in-two-steps":
            with destination.replacing(out, keep=False):
                pass  # puts back what a kill between the two steps has left aside
        found = contents(out)
        standing = next((layout for layout in EXPORTS if found == whole[layout]), "")
        assert standing, (ends, sorted(found))
        assert not finished or standing == following
    print(ends)


def contents(directory: Path) -> dict[str, bytes]:
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in directory.rglob("*") if path.is_file()}  # fmt: skip


def forked(out: Path, options: ExportOptions, last: int, number: signal.Signals) -> bool:
    """Export in a process that is ended by a signal at its file event of a number; whether it came to its own end."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        ended = os.waitstatus_to_exitcode(status)
        assert ended in (0, 130, -signal.SIGKILL), ended
        return ended == 0
    left = last

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event.startswith(EVENTS):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), number)

    try:
        sys.addaudithook(count)
        export(gpt2(), out, options)
        os._exit(0)
    except KeyboardInterrupt:
        os._exit(130)
    finally:
        import traceback

        traceback.print_exc()
        os._exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
