"""One digest per preset, of its resolved spec: no preset changes unnoticed, and a failure names the keys that changed.

``make digests`` (``python -m tests.specs.digests``) records the present state, a digest of the JSON Schema, and
which presets differ in structure, and writes the keywords of ``zoo.export``.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from specs.files.schema import json_schema
from specs.forms.resolved import resolved
from specs.language.load import load
from specs.language.preset_files import preset_names
from specs.language.writing import dump
from tests.exporters.reduced_presets import RECORDED, found_structures
from tests.specs.keywords import FILE, keywords_text

ROOT = Path(__file__).parents[2]
DIGESTS = Path(__file__).with_name("presets.sha256")
SCHEMA = Path(__file__).with_name("schema.sha256")
UPDATE = "If the change is intended, run `make digests`."


def recorded() -> dict[str, str]:
    """The recorded digest of each preset."""
    return dict(line.split() for line in DIGESTS.read_text("utf-8").splitlines())


def text_of(name: str) -> str:
    """The resolved spec of a preset, as ``zoo show`` prints it."""
    return dump(resolved(load(name)))


def digest(text: str) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def schema_text() -> str:
    """The JSON Schema of the spec language, as ``zoo schema`` prints it."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def explanation(name: str, now: str) -> str:
    """Why the digest of a preset is not the recorded one: each changed key, with its value before and now."""
    line = f"{name} {recorded().get(name, '')}"
    before = _when_recorded(DIGESTS, line, "show", name)
    return _explained(name, None if before is None else yaml.safe_load(before), yaml.safe_load(now))


def schema_explanation(now: str) -> str:
    """Why the digest of the schema is not the recorded one: each changed key, with its value before and now."""
    before = _when_recorded(SCHEMA, SCHEMA.read_text("utf-8").strip(), "schema")
    return _explained("The schema", None if before is None else json.loads(before), json.loads(now))


def _explained(name: str, before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> str:
    if before is None:
        return f"{name}: no commit in this checkout has the recorded state. {UPDATE}"
    lines = list(changed_keys(before, now)) or ["the text, but no value"]
    return "\n".join([f"{name} has changed:", *(f"  {line}" for line in lines), UPDATE])


def changed_keys(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """A line for each key that was added, removed or changed."""
    a, b = dict(_leaves(before)), dict(_leaves(now))
    for key in [*a, *(key for key in b if key not in a)]:
        if key not in b:
            yield f"{key}: {a[key]!r} -> removed"
        elif key not in a:
            yield f"{key}: added -> {b[key]!r}"
        elif a[key] != b[key]:
            yield f"{key}: {a[key]!r} -> {b[key]!r}"


def _leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if not isinstance(node, Mapping | list) or not node:
        yield path, node
        return
    parts = node.items() if isinstance(node, Mapping) else enumerate(node)
    for key, value in parts:
        yield from _leaves(value, f"{path}.{key}" if path else str(key))


def _when_recorded(records: Path, line: str, *command: str) -> str | None:
    """What a command printed in the newest commit whose file of records has a line, if the digest in it is of that.

    None where git or that commit is missing, as in a shallow clone.
    """
    found = _git("log", "--format=%H", "-1", "-S", line, "--", str(records.relative_to(ROOT)))
    archive = found and _git("archive", found.decode().strip(), "zoo", "cli", "specs")
    if not archive:
        return None
    with TemporaryDirectory() as place:
        with tarfile.open(fileobj=BytesIO(archive)) as files:
            files.extractall(place, filter="data")
        program = [sys.executable, "-m", "zoo", *command]
        done = subprocess.run(program, cwd=place, capture_output=True, check=False, env={"PYTHONPATH": place})
    text = done.stdout.decode()
    return text if digest(text) == line.split()[-1] else None


def _git(*arguments: str) -> bytes | None:
    try:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None


if __name__ == "__main__":
    DIGESTS.write_text("".join(f"{name} {digest(text_of(name))}\n" for name in preset_names()), "utf-8")
    RECORDED.write_text("".join(f"{name}\n" for name in found_structures()), "utf-8")
    SCHEMA.write_text(f"{digest(schema_text())}\n", "utf-8")
    FILE.write_text(keywords_text(), "utf-8")
