"""Specs that the studio opens: a preset, a file, a checkpoint, a config, or an address that holds a spec."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cli.studio.link import is_link, text_of_link
from specs.base.errors import UserError
from specs.files.new_spec import STARTS
from specs.forms.resolved import resolved
from specs.language.catalog import preset_names
from specs.language.load import read
from specs.language.spec_file import read_file
from specs.language.variant import unclaimed
from specs.language.writing import dump
from zoo.configs.importing import import_spec
from zoo.families.common.config import CONFIG

FIRST = STARTS["decoder"]
"""The preset that the studio opens without a SPEC."""


@dataclass(frozen=True)
class OpenedSpec:
    """The text of a spec, the preset that it starts from, and the file that it was read from."""

    label: str
    text: str
    preset: str = ""
    file: str = ""

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self)


def opened(reference: str) -> OpenedSpec:
    """The spec that a reference names.  Raises :class:`UserError` for one that names none."""
    if is_link(reference):
        return OpenedSpec("a shared spec", text_of_link(reference))
    if reference in preset_names():
        return OpenedSpec(reference, dump(unclaimed(read(reference)).data), preset=reference)
    path = Path(reference)
    if path.suffix in (".yaml", ".yml") or (
        path.is_file() and path.suffix != ".json" and not _is_checkpoint(path)
    ):
        read_file(path)  # says what is wrong with the file
        return OpenedSpec(path.name, path.read_text("utf-8-sig"), file=str(path))
    return OpenedSpec(path.name or reference, _text_of_other(reference))


def _is_checkpoint(path: Path) -> bool:
    from zoo.weights.gguf_file import is_gguf

    return is_gguf(path)


def _text_of_other(reference: str) -> str:
    """The text of a checkpoint's or an export's spec."""
    from zoo.reports.side import read_side

    return dump(resolved(read_side(reference).spec))


def opened_below(reference: str, folder: Path) -> OpenedSpec:
    """The spec that the page asks for: a preset, an address, or a path below the studio's folder."""
    if not is_link(reference) and reference not in preset_names():
        if not reference.isprintable():
            raise UserError(
                f"A path must be printable text.\n  value: {reference!r}\n  Remove the other characters."
            )
        path = (folder / reference).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise UserError(
                f"The page opens files in {folder.resolve()} and below.\n  value: {reference!r}\n"
                "  Start zoo studio with the path, or in a folder above it."
            )
        if not path.exists():
            from specs.language.reference import locate

            locate(reference)  # suggests the nearest preset
        spec = opened(str(path))
        return replace(spec, file=str(path.relative_to(folder.resolve()))) if spec.file else spec
    return opened(reference)


def imported(config: str) -> OpenedSpec:
    """The spec of the text of a Hugging Face ``config.json``."""
    try:
        data = json.loads(config)
    except ValueError as error:
        raise UserError(f"The config is not valid JSON: {error}\n  Paste the whole config.json.") from None
    if not isinstance(data, dict):
        raise UserError("A config must be a JSON object.\n  Paste the whole config.json.")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / CONFIG
        path.write_text(json.dumps(data), "utf-8")
        spec = import_spec(path, name=_name_of(data))
    return OpenedSpec(spec.name, dump(resolved(spec)))


def _name_of(config: dict[str, Any]) -> str | None:
    label = config.get("_name_or_path") or config.get("model_type")
    name = str(label).rstrip("/").rpartition("/")[2] if label else ""
    kept = "".join(letter for letter in name if letter.isascii() and (letter.isalnum() or letter in "._-"))
    return kept.lstrip("._-")[:100] or None
