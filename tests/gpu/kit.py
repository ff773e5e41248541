"""What a GPU machine without a network needs to run the tests and benchmarks: wheels in parts that are easy to carry.

``python -m tests.gpu.kit collect DIR`` downloads the wheels for that machine's Python and cuts the large ones;
``python -m tests.gpu.kit install DIR`` there puts them together, compares their digests and installs them in DIR/site.
Only the standard library is imported, as the other machine has nothing else before.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

PART = 48_000_000
"""Bytes of a part: less than machines that take little at a time accept, with the project beside it."""

ALONE = ("onnxruntime-gpu",)
"""Packages whose requirements that machine has: PyTorch brings them."""

WITH_REQUIREMENTS = ("pydantic",)

PLATFORMS = (
    "manylinux_2_28_x86_64",
    "manylinux_2_27_x86_64",
    "manylinux_2_17_x86_64",
    "manylinux2014_x86_64",
)

SUMS = "SHA256SUMS"
WHEELS = "wheels"
SITE = "site"


class KitError(Exception):
    """A kit that is incomplete or damaged."""


def collect(directory: Path, python: str, constraints: Path) -> list[Path]:
    """Download the wheels, cut them into parts and record their digests; return the parts."""
    wheels = directory / WHEELS
    for arguments in (["--no-deps", *ALONE], WITH_REQUIREMENTS):
        platforms = [part for name in PLATFORMS for part in ("--platform", name)]
        where = ["--only-binary=:all:", "--implementation=cp", f"--python-version={python}", *platforms]
        command = ["-m", "pip", "download", "--quiet", "-c", str(constraints), "-d", str(wheels), *where]
        subprocess.run([sys.executable, *command, *arguments], check=True)
    found = sorted(wheels.glob("*.whl"))
    (directory / SUMS).write_text("".join(f"{digest(wheel)}  {wheel.name}\n" for wheel in found))
    return [part for wheel in found for part in cut(wheel, directory)]


def cut(wheel: Path, directory: Path, size: int = PART) -> Iterator[Path]:
    """Move the bytes of a wheel into parts of at most ``size`` bytes, named ``<wheel>.000`` and so on."""
    with wheel.open("rb") as source:
        for number in range(max(1, -(-wheel.stat().st_size // size))):
            part = directory / f"{wheel.name}.{number:03}"
            part.write_bytes(source.read(size))
            yield part
    wheel.unlink()


def join(directory: Path) -> list[Path]:
    """Put the wheels together and compare them with their digests.  Raises :class:`KitError`."""
    if not (directory / SUMS).is_file():
        raise KitError(
            f"{directory} is not a kit (no {SUMS}).\n  Run make gpu-kit where there is a network, and carry it here."
        )
    wheels = directory / WHEELS
    wheels.mkdir(exist_ok=True)
    found = []
    for line in (directory / SUMS).read_text().splitlines():
        wanted, name = line.split()
        wheel = wheels / name
        if not wheel.is_file() or digest(wheel) != wanted:
            parts = sorted(directory.glob(f"{name}.[0-9][0-9][0-9]"))
            wheel.write_bytes(b"".join(part.read_bytes() for part in parts))
            if digest(wheel) != wanted:
                wheel.unlink()
                raise KitError(
                    f"{name}: its {len(parts)} parts do not have the recorded digest.\n  Carry the missing or damaged parts again."
                )
        found.append(wheel)
    return found


def install(directory: Path) -> Path:
    """Install the wheels in a directory for PYTHONPATH, unless the same ones are there; return it."""
    site, stamp = directory / SITE, directory / SITE / SUMS
    sums = (directory / SUMS).read_text() if (directory / SUMS).is_file() else ""
    if not sums or not stamp.is_file() or stamp.read_text() != sums:
        wheels = [str(wheel) for wheel in join(directory)]
        options = ["--no-index", "--no-deps", "--no-compile", "--no-cache-dir", "--upgrade"]
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", *options, "--target", str(site), *wheels],
            check=True,
        )
        stamp.write_text(sums)
    return site


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main(arguments: Sequence[str] | None = None) -> int:
    """Collect or install a kit; the exit status is 2 for one that cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.kit", description=__doc__)
    parser.add_argument("action", choices=("collect", "install"))
    parser.add_argument("directory", type=Path)
    parser.add_argument(
        "--python", default="3.12", help="version of Python on the GPU machine (default: 3.12)"
    )
    parser.add_argument("--constraints", type=Path, default=Path("constraints.txt"))
    given = parser.parse_args(arguments)
    try:
        if given.action == "install":
            print(install(given.directory))
        else:
            given.directory.mkdir(parents=True, exist_ok=True)
            parts = collect(given.directory, given.python, given.constraints)
            for part in parts:
                print(f"{part.stat().st_size / 1e6:6.1f} MB  {part}")
    except KitError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
