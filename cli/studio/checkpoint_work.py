"""A checkpoint of a spec, as ``zoo convert`` writes it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any


def run(request: Mapping[str, Any], tell: Callable[..., None]) -> None:
    """Write a Hugging Face checkpoint below the studio's folder; one that is there is replaced only where the request says so."""
    from cli.studio.typed_spec import TypedSpec
    from specs.base.errors import UserError
    from zoo.checkpoints.converting import convert
    from zoo.configs.exporting import NoFamilyError
    from zoo.core.progress import Stage
    from zoo.core.units import byte_text
    from zoo.files.destination import CONVERSION, check_replaceable, replacing
    from zoo.remote_code.write import convert_with_code

    folder = Path(request["folder"])
    name, destination = request["directory"], folder / request["directory"]
    spec = TypedSpec.read(request["text"], folder).model
    check_replaceable(destination, CONVERSION)
    if os.path.lexists(destination / CONVERSION) and not request["replace"]:
        tell("exists", directory=name)
        return
    _check_room(spec, request["dtype"], folder)

    def progress(stage: Stage) -> None:
        tell("progress", **asdict(stage))

    write = convert_with_code if request["code"] else convert
    try:
        with replacing(destination, CONVERSION) as directory:
            written = write(spec, request["weights"], directory, dtype=request["dtype"], progress=progress)
    except NoFamilyError as error:
        raise UserError(
            f"{error.text}\n  Or choose trust_remote_code, which writes the model's own code with it."
        ) from None
    tell(
        "done",
        directory=name,
        loader=written.loader or written.class_name,
        weights=written.weights,
        files=[[file, size, byte_text(size)] for file, size in written.files.items()],
    )


def _check_room(spec: Any, dtype: str, folder: Path) -> None:
    from specs.base.errors import UserError
    from zoo.checkpoints.converting import DTYPES
    from zoo.core.units import byte_text
    from zoo.reports.folding import Folded
    from zoo.reports.memory import stored_bytes

    needed, free = stored_bytes(Folded.of(spec), DTYPES[dtype]), shutil.disk_usage(folder).free
    if needed > free:
        raise UserError(
            f"The checkpoint needs {byte_text(needed)}, and the disk has {byte_text(free)} free.\n"
            "  Use another type of weights, or a smaller model."
        )
