"""Specs of files whose contents the page sends, since a browser keeps their paths to itself: a config, or the head of a GGUF file."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cli.studio.opened_spec import OpenedSpec
from specs.base.errors import UserError
from specs.forms.resolved import resolved
from specs.language.writing import dump
from specs.model.model import Model
from zoo.configs.importing import import_spec, spec_of_config
from zoo.families.common.config import CONFIG, Config

MOST_HEAD = 24_000_000
"""The most bytes of a GGUF file that are read: its header, with a vocabulary of several hundred thousand tokens."""

LARGEST = 2**44
"""The most bytes that a GGUF file may claim to have."""


def imported(config: str) -> OpenedSpec:
    """The spec of the text of a Hugging Face ``config.json``."""
    try:
        data = json.loads(config)
    except (ValueError, RecursionError) as error:
        raise UserError(f"The config is not valid JSON: {error}\n  Paste the whole config.json.") from None
    if not isinstance(data, dict):
        raise UserError("A config must be a JSON object.\n  Paste the whole config.json.")

    skipped: list[str] = []
    name = _name(str(data.get("_name_or_path") or data.get("model_type") or ""))

    def read(path: Path) -> Model:
        path.write_text(config, "utf-8")
        return import_spec(path, name=name, tell=skipped.extend)

    spec = _read_in_passing(CONFIG, read)
    return OpenedSpec(spec.name, dump(resolved(spec)), skipped=tuple(skipped))


def opened_head(head: bytes, size: int, name: str) -> OpenedSpec:
    """The spec of a GGUF file of ``size`` bytes that begins with ``head``.

    The rest of the file is a hole, which takes no space and is never read.
    """
    from zoo.configs.gguf import config_of_header, fields_as_keys
    from zoo.weights.gguf_header import read_header

    if not len(head) <= size <= LARGEST:
        raise UserError(f"A GGUF file has from {len(head):,} to {LARGEST:,} bytes.\n  value: {size:,}")
    label = _name(Path(name).stem) or "dropped"

    def read(path: Path) -> Model:
        path.write_bytes(head)
        with path.open("r+b") as file:
            file.truncate(size)
        header = read_header(path, known=len(head) if len(head) < size else None)
        config = Config(config_of_header(header), str(path))
        with fields_as_keys(config):
            return spec_of_config(config, name=label)

    spec = _read_in_passing(f"{label}.gguf", read)
    return OpenedSpec(f"{label}.gguf", dump(resolved(spec)))


def _read_in_passing(name: str, read: Callable[[Path], Model]) -> Model:
    """Read a temporary file of a name.  Messages have the name alone."""
    with tempfile.TemporaryDirectory(prefix="zoo-studio-") as directory:
        path = Path(directory) / name
        try:
            return read(path)
        except UserError as error:
            raise UserError(error.text.replace(str(path), name)) from None
        except OSError as error:
            raise UserError(f"{name} cannot be kept for a moment: {error.strerror}") from None


def _name(label: str) -> str | None:
    """The printable part of a name that a spec may have."""
    last = label.rstrip("/").rpartition("/")[2]
    return re.sub(r"[^A-Za-z0-9._-]+", "-", last).strip("._-")[:100] or None


def head_fields(query: Any) -> tuple[int, str]:
    """The size and the name of a file in a query.  Raises :class:`ValueError` for anything else."""
    size, name = str(query.get("size", "")), str(query.get("name", ""))
    if not (
        size.isascii() and size.isdecimal() and len(size) < 20 and name.isprintable() and len(name) <= 300
    ):
        raise ValueError
    return int(size), name
