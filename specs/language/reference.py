"""References to specs: preset names and paths."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NoReturn

from specs.base.errors import Mark, Problem, SpecError
from specs.base.suggest import nearest, suggestion
from specs.language.preset_files import PRESETS, preset_names

SUFFIXES = (".yaml", ".yml")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_HUB_FILE = re.compile(rf"(?P<repository>{_HUB_ID.pattern})(?:/(?P<file>[\w.-]+\.gguf)|:(?P<end>[\w.-]+))?")
_FILES = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".json", *SUFFIXES)


def is_hub_id(reference: str) -> bool:
    """Whether a reference looks like ``org/name`` on the Hugging Face hub, and not like a path of an existing directory."""
    parent = os.path.dirname(reference)
    return (
        bool(_HUB_ID.fullmatch(reference)) and not reference.endswith(_FILES) and not os.path.exists(parent)
    )


def hub_file(reference: str) -> tuple[str, str]:
    """The repository of the hub that a reference names, and the GGUF file in it, in full or by the end of its name; empty where
    it names none.

    ``org/name/file.gguf`` and ``org/name:Q4_K_M`` name a file, ``org/name`` does not; a path below an existing directory names no
    repository.
    """
    named = _HUB_FILE.fullmatch(reference)
    if named is None or os.path.exists(reference) or not is_hub_id(named["repository"]):
        return "", ""
    return named["repository"], named["file"] or named["end"] or ""


def locate(reference: str) -> Path:
    """The file of a preset or of a path. Raises :class:`SpecError` if neither exists."""
    if (preset := preset_file(reference)) is not None:
        return preset
    if os.path.exists(reference) and reference:
        return Path(reference)
    name = reference.removesuffix(".yaml").removesuffix(".yml")
    if name != reference and preset_file(name) is not None:
        _refuse(reference, f"The file does not exist; the preset is named {name}.")
    if reference and (reference.endswith(SUFFIXES) or os.sep in reference):
        return Path(reference)
    near = nearest(reference, preset_names())
    begin = "Pass" if near is None else f"Did you mean {near!r}?\nOr pass"
    return _refuse(
        reference,
        f"{begin} the path of a YAML file, a checkpoint or a GGUF file, or "
        "ORG/NAME of a hub repository; `zoo list` shows the presets.",
    )


def locate_base(reference: str, directory: Path, mark: Mark | None) -> Path:
    """The file that a spec in ``directory`` extends: a preset, or a YAML file relative to it.

    Other files are never opened, so that an untrusted spec cannot reveal their contents.
    """
    if (preset := preset_file(reference)) is not None:
        return preset
    is_yaml = reference.endswith(SUFFIXES)
    if is_yaml and os.path.isfile(directory / reference):
        return directory / reference
    if is_yaml:
        remedy = "Paths are relative to this file; `zoo list` shows the presets."
    elif os.sep in reference or os.path.exists(directory / reference):
        remedy = "Use a file with the suffix .yaml or .yml."
    else:
        remedy = _near_preset(reference)
    raise SpecError([Problem("must be a preset or a file", ("extends",), reference, remedy, mark)])


def preset_file(reference: str) -> Path | None:
    """The file of a preset, or None for an unknown name."""
    path = PRESETS / f"{reference}.yaml"
    return path if "/" not in reference and os.sep not in reference and os.path.isfile(path) else None


def _near_preset(name: str) -> str:
    return (
        f"{suggestion(name, preset_names())}\nOr pass the path of a YAML file; `zoo list` shows the presets."
    )


def _refuse(reference: str, remedy: str) -> NoReturn:
    rule = "A model must be a preset, a file, a checkpoint or a hub repository"
    raise SpecError([Problem(rule, (), reference, remedy)])
