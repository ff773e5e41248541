"""Check that an exported directory still is what was verified; this file needs only NumPy and ONNX Runtime, and can be
copied.

``python -m zoo.certificate DIR [cpu|cuda|tensorrt]`` prints the result; the exit status is 0 where everything passed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

PROVIDERS: dict[str, tuple[str, dict[str, str]]] = {
    "cpu": ("CPUExecutionProvider", {}),
    "cuda": ("CUDAExecutionProvider", {"use_tf32": "0"}),
    "tensorrt": ("TensorrtExecutionProvider", {}),
}

Run = Callable[[dict[str, Any]], dict[str, Any]]
"""A loaded graph: its outputs by name, for inputs by name."""

Load = Callable[[dict[str, Any]], dict[str, Run]]
"""Loads graphs, given session configuration entries by their paths."""


@dataclass
class Certificate:
    """The result: ``faults`` are changed files, graphs that do not run and outputs beyond their tolerance.

    ``outputs`` holds the largest difference and the tolerance of each compared output; ``note`` is the reason where none was
    compared.
    """

    directory: str
    provider: str = ""
    files: int = 0
    outputs: dict[str, tuple[float, float]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    note: str = ""

    @property
    def passed(self) -> bool:
        """Return whether there are no faults and something was run."""
        return not self.faults and bool(self.outputs)

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {**asdict(self), "passed": self.passed}


def certify(directory: str | Path, provider: str | None = None, load: Load | None = None) -> Certificate:
    """Compare the files of an export with their digests, and their outputs with the recorded case.

    ``provider`` is cpu, cuda or tensorrt (default: the first that the export is for and this machine runs).  ``load`` loads the
    graphs elsewhere.  Raises OSError and ValueError for a directory that is not an export.
    """
    root, found = Path(directory), Certificate(str(directory))
    content = (root / "export.json").read_bytes()
    manifest = json.loads(content)
    build = json.loads((root / "build.json").read_bytes())
    if hashlib.sha256(content).hexdigest() != build["export"]:
        found.faults.append("export.json is not the one that build.json was written for")
    probe = build.get("probe")
    for name, record in {**manifest["files"], **({"probe.npz": probe} if probe else {})}.items():
        found.files += 1
        if not (root / name).is_file():
            found.faults.append(f"{name} is missing")
        elif _sha256(root / name) != record["sha256"]:
            found.faults.append(f"{name} has other contents than were recorded")
    if not probe:
        found.note = (
            "No case was recorded: the export was not verified, was too large to run, is in bfloat16, or has routers "
            "that choose between experts with equal scores."
        )
    elif not found.faults:
        for graph in manifest["graphs"].values():  # without which the runtime refuses a graph
            os.environ.update(graph.get("environment", {}))
        providers = [provider] if provider else _usable(manifest["providers"])
        _replay(root, found, load or partial(_load, root, found, providers=providers))
    return found


def _replay(root: Path, found: Certificate, load: Load) -> None:
    """Run the recorded calls, and compare their outputs."""
    arrays = np.load(root / "probe.npz")
    probe, results = json.loads(str(arrays["probe"])), list[dict[str, Any]]()
    try:
        sessions = load(probe["sessions"])
        for call in probe["calls"]:
            feeds = {
                given: arrays[source]
                if isinstance(source, str)
                else results[source["call"]][source["output"]]
                for given, source in call["inputs"].items()
            }
            results.append(sessions[call["graph"]](feeds))
    except Exception as error:  # ONNX Runtime's errors have no common class
        found.faults.append(f"The recorded case does not run: {str(error).splitlines()[0]}")
        return
    for place, (call, result) in enumerate(zip(probe["calls"], results, strict=True)):
        for output, wanted in call["outputs"].items():
            _compare(found, f"{call['graph']}, call {place + 1}, {output}", result[output], wanted, arrays)


def _load(root: Path, found: Certificate, graphs: dict[str, Any], providers: list[str]) -> dict[str, Run]:
    """Load graphs on the first provider that takes them, with the given session configuration entries."""
    ort.set_default_logger_severity(4)
    for provider in providers:
        found.provider, settings = PROVIDERS[provider]
        try:
            sessions = {}
            for path, entries in graphs.items():
                options = ort.SessionOptions()
                options.log_severity_level = 4
                for key, value in entries.items():
                    options.add_session_config_entry(key, value)
                chosen = [(found.provider, settings)]
                sessions[path] = ort.InferenceSession(root / path, options, chosen, enable_fallback=0)
                if sessions[path].get_providers()[0] != found.provider:
                    raise RuntimeError(f"{found.provider} is not available on this machine")
            return {path: partial(_run, session) for path, session in sessions.items()}
        except Exception:  # the next provider may load them
            if provider == providers[-1]:
                raise
    raise ValueError("no provider")


def _run(session: Any, feeds: dict[str, Any]) -> dict[str, Any]:
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def _compare(found: Certificate, name: str, got: Any, wanted: dict[str, Any], arrays: Any) -> None:
    if wanted["tokens"] is not None:
        got = got.reshape(-1, got.shape[-1])[arrays[wanted["tokens"]]]
    values = arrays[wanted["values"]].astype(np.float64)
    kept = got.reshape(-1)[:: wanted["stride"]].astype(np.float64)
    same = kept.shape == values.shape and np.isfinite(kept).all()
    difference = float(np.abs(kept - values).max(initial=0.0)) if same else float("inf")
    found.outputs[name] = (difference, wanted["tolerance"])
    if difference > wanted["tolerance"]:
        found.faults.append(f"{name} is off by {difference:.2e}, and {wanted['tolerance']:.1e} is allowed")


def _usable(wanted: list[str]) -> list[str]:
    """Return the providers that an export is for and this build of ONNX Runtime has, and the CPU provider."""
    here = ort.get_available_providers()
    return [
        short for short, (name, _) in PROVIDERS.items() if name in here and name in wanted and short != "cpu"
    ] + ["cpu"]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    certificate = certify(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
    print(json.dumps(certificate.as_dict(), indent=2))
    sys.exit(0 if certificate.passed else 1)
