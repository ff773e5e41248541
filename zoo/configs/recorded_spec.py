"""The spec that a checkpoint of ``torch.distributed.checkpoint`` records beside its shards."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import ValidationError

from specs.base.errors import SpecPath, path_text, shorten
from specs.forms.canonical import canonical, differences
from specs.model.model import Model
from zoo.files.reading import read_regular, unreadable
from zoo.weights.source import WeightError

SPEC = "spec.json"
_LISTED = 4


def record_spec(directory: Path, spec: Model) -> None:
    """Write a spec beside the shards."""
    (directory / SPEC).write_text(spec.model_dump_json(indent=2) + "\n", encoding="utf-8")


def recorded_spec(directory: Path) -> Model | None:
    """Return the spec that a directory records, or None. Raises :class:`WeightError` where it is damaged."""
    path = directory / SPEC
    try:
        return Model.model_validate_json(read_regular(path, directory))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise WeightError(unreadable(path, error)) from None
    except ValidationError as error:
        first = error.errors()[0]
        position = path_text(first["loc"]) or "the file"
        raise WeightError(
            f"{path} is no spec: {position}: {first['msg']}\n  Copy the checkpoint again, or save it again."
        ) from None


def check_recorded_spec(directory: Path, spec: Model) -> None:
    """Raise :class:`WeightError` where a directory records a spec that computes something else.

    Names, texts, published counts, dropout, initialization and bounds on the length of inputs may differ.
    """
    stored = recorded_spec(directory)
    if stored is None:
        return
    differing = dict.fromkeys(
        f"  {_place(path)}: {shorten(ours)} (recorded: {shorten(theirs)})"
        for path, ours, theirs in differences(canonical(spec), canonical(stored))
    )
    if differing:
        listed = [*differing][:_LISTED]
        listed += [f"  ... and {len(differing) - _LISTED} more"] if len(differing) > _LISTED else []
        raise WeightError(
            "\n".join(
                [
                    f"{directory} is a checkpoint of another spec",
                    *listed,
                    f"  Use the spec in {directory / SPEC}, or derive weights for {spec.name} with zoo adapt.",
                ]
            )
        )


def _place(path: SpecPath) -> str:
    """A path with [*] for the number of a layer, as layers differ alike."""
    return re.sub(r"\[\d+\]", "[*]", path_text(path))
