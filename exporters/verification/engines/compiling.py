"""The shape ranges that a compiler needs for a graph: smallest, common and largest shapes of its inputs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from exporters.target.profiles import Shapes, read_options
from exporters.target.targets import TARGETS
from exporters.verification.engines.process import EngineError
from zoo.record.manifest import Manifest


def recorded_shapes(directory: Path, manifest: Manifest) -> Mapping[str, Shapes]:
    """The shapes of the inputs of each graph, from an export's optimization profiles.

    Raises :class:`exporters.verification.engines.process.EngineError` for an export without them.
    """
    target = TARGETS.get(manifest.target)
    name = target.profiles if target is not None else None
    if name is None or name not in manifest.files:
        raise EngineError("the export has no optimization profiles: export it again")
    data = json.loads((directory / name).read_text("utf-8"))
    return {graph: read_options(data[graph]) for graph in manifest.graphs}
