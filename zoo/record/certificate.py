"""Check that an exported directory still is what was verified; this file needs only NumPy and ONNX Runtime, and can be
copied.

``python -m zoo.record.certificate DIR [cpu|cuda|tensorrt]`` prints the result; the exit status is 0 where everything passed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

CPU = "CPUExecutionProvider"

PROVIDERS: dict[str, tuple[str, dict[str, str]]] = {
    "cpu": (CPU, {}),
    "cuda": ("CUDAExecutionProvider", {"use_tf32": "0"}),
    "tensorrt": ("TensorrtExecutionProvider", {}),
    "webgpu": ("WebGpuExecutionProvider", {}),
}

Run = Callable[[dict[str, Any]], dict[str, Any]]
"""A loaded graph: its outputs by name, for inputs by name."""

Load = Callable[[dict[str, Any]], dict[str, Run]]
"""Loads graphs, given session configuration entries by their paths."""


LARGEST = 2**28
"""The largest record in bytes."""

VARIABLES = ("ALLOW_RELEASED_ONNX_OPSET_ONLY",)
"""The environment variables that a record may set: without them the runtime refuses some graphs."""


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
    root, certificate = Path(directory), Certificate(str(directory))
    try:
        str(directory).encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"{str(directory)!a}: the path must be UTF-8, because ONNX Runtime opens no other"
        ) from None
    content, manifest = _record(root, "export.json")
    _, build = _record(root, "build.json")
    try:
        probe, digests = (
            build.get("probe"),
            {name: str(file["sha256"]) for name, file in manifest["files"].items()},
        )
        if probe:
            digests["probe.npz"] = str(probe["sha256"])
        if not {*manifest["graphs"]} <= {*digests}:
            raise ValueError("it has no digest of a graph")
        providers = [str(provider_name) for provider_name in manifest["providers"]]
        environment = {
            str(key): str(value)
            for graph in manifest["graphs"].values()
            for key, value in graph.get("environment", {}).items()
        }
        exported = build["export"]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{root}: a record is damaged: {type(error).__name__}: {error}") from None
    if hashlib.sha256(content).hexdigest() != exported:
        certificate.faults.append("export.json is not the one that build.json was written for")
    for name, digest in digests.items():
        certificate.files += 1
        try:
            with _opened(root, name) as file:
                same = hashlib.file_digest(file, "sha256").hexdigest() == digest
        except FileNotFoundError:
            certificate.faults.append(f"{name} is missing")
        except OSError as error:
            certificate.faults.append(f"{name} cannot be read: {error.strerror or error}")
        except ValueError as error:
            certificate.faults.append(f"{name} cannot be read: {error}")
        else:
            certificate.faults += [] if same else [f"{name} has other contents than were recorded"]
    if not probe:
        certificate.note = (
            "No case was recorded: the export was not verified, was too large to run, is in bfloat16, or has routers "
            "that choose between experts with equal scores."
        )
    elif not certificate.faults:
        os.environ.update({name: value for name, value in environment.items() if name in VARIABLES})
        _replay_on(root, certificate, [provider] if provider else _usable(providers), load, providers)
    return certificate


def _replay_on(
    root: Path, certificate: Certificate, chosen: list[str], load: Load | None, providers: list[str]
) -> None:
    """Run the recorded calls on chosen providers, or as ``load`` loads them, of those that the export is for."""
    only = "" if CPU in providers else ", ".join(providers)
    if only and load is None and not any(PROVIDERS[name][0] in providers for name in chosen):
        certificate.note = f"Only {only} runs its graphs."
        return
    _replay(root, certificate, load or partial(_load, root, certificate, providers=chosen), only)


def _replay(root: Path, certificate: Certificate, load: Load, only: str) -> None:
    """Run the recorded calls, and compare their outputs; ``only`` names the provider of graphs that the CPU's does not run."""
    results = list[dict[str, Any]]()
    try:
        with _opened(root, "probe.npz") as file, zipfile.ZipFile(file) as held:
            if sum(member.file_size for member in held.infolist()) > LARGEST:
                raise ValueError(f"probe.npz unpacks to more than {LARGEST // 2**20} MiB")
        with _opened(root, "probe.npz") as file:
            arrays = dict(np.load(file, allow_pickle=False))
        probe = json.loads(str(arrays["probe"]))
        sessions = load(probe["sessions"])
        for call in probe["calls"]:
            feeds = {
                name: arrays[source] if isinstance(source, str) else results[source["call"]][source["output"]]
                for name, source in call["inputs"].items()
            }
            results.append(sessions[call["graph"]](feeds))
    except Exception as error:  # ONNX Runtime's errors have no common class
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        if only:
            words, _, _ = reason.partition(". ")
            certificate.note = f"Only {only} runs its graphs, and they do not run here: {words}"
            return
        certificate.faults.append(f"The recorded case does not run: {reason}")
        return
    try:
        for index, (call, result) in enumerate(zip(probe["calls"], results, strict=True)):
            for output, wanted in call["outputs"].items():
                _compare(
                    certificate,
                    f"{call['graph']}, call {index + 1}, {output}",
                    result[output],
                    wanted,
                    arrays,
                )
    except Exception as error:
        certificate.faults.append(f"probe.npz is damaged: {type(error).__name__}: {error}")


def _load(
    root: Path, certificate: Certificate, graphs: dict[str, Any], providers: list[str]
) -> dict[str, Run]:
    """Load graphs on the first provider that takes them, with the given session configuration entries."""
    ort.set_default_logger_severity(4)
    for provider in providers:
        certificate.provider, settings = PROVIDERS[provider]
        try:
            sessions = {}
            for path, entries in graphs.items():
                options = ort.SessionOptions()
                options.log_severity_level = 4
                for key, value in entries.items():
                    options.add_session_config_entry(key, value)
                chosen = [(certificate.provider, settings)]
                sessions[path] = ort.InferenceSession(root / path, options, chosen, enable_fallback=0)
                if sessions[path].get_providers()[0] != certificate.provider:
                    raise RuntimeError(f"{certificate.provider} is not available on this machine")
            return {path: partial(run_session, session) for path, session in sessions.items()}
        except Exception:  # the next provider may load them
            if provider == providers[-1]:
                raise
    raise ValueError("no provider")


def run_session(session: Any, feeds: dict[str, Any]) -> dict[str, Any]:
    """The outputs of a session by name."""
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def _compare(certificate: Certificate, name: str, got: Any, wanted: dict[str, Any], arrays: Any) -> None:
    if wanted["tokens"] is not None:
        got = got.reshape(-1, got.shape[-1])[arrays[wanted["tokens"]]]
    values = arrays[wanted["values"]].astype(np.float64)
    kept = got.reshape(-1)[:: wanted["stride"]].astype(np.float64)
    same = kept.shape == values.shape and np.isfinite(kept).all()
    difference = float(np.abs(kept - values).max(initial=0.0)) if same else float("inf")
    certificate.outputs[name] = (difference, wanted["tolerance"])
    if difference > wanted["tolerance"]:
        certificate.faults.append(
            f"{name} is off by {difference:.2e}, and {wanted['tolerance']:.1e} is allowed"
        )


def _usable(wanted: list[str]) -> list[str]:
    """Return the providers that an export is for and this build of ONNX Runtime has, the CPU provider last."""
    available = ort.get_available_providers()
    return [
        short
        for short, (name, _) in PROVIDERS.items()
        if name in available and name in wanted and short != "cpu"
    ] + (["cpu"] if CPU in wanted else [])


def _record(root: Path, name: str) -> tuple[bytes, dict[str, Any]]:
    """Return a record of an export, as bytes and as data."""
    try:
        with _opened(root, name) as file:
            content = file.read(LARGEST + 1)
        data = json.loads(content[:LARGEST])
    except OSError as error:
        raise ValueError(f"{root / name} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise ValueError(f"{root / name} is not a JSON object of at most {LARGEST // 2**20} MiB")
    return content, data


def _opened(root: Path, name: str) -> BufferedReader:
    """Open a regular file of a directory, or of the hub's cache if the directory is a snapshot in it."""
    path, top = (Path(os.path.realpath(inner)) for inner in (root / name, root))
    bases = [
        top,
        *(inner.parent.parent / "blobs" for inner in (top, *top.parents) if inner.parent.name == "snapshots"),
    ]
    if not any(path.is_relative_to(base) for base in bases):
        raise OSError(errno.EINVAL, "it is not in the directory")
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return open(descriptor, "rb")


def main(arguments: Sequence[str]) -> int:
    """Print the certificate of a directory; return the exit status: 1 if it does not pass, 2 for wrong arguments."""
    if not 1 <= len(arguments) <= 2 or (len(arguments) == 2 and arguments[1] not in PROVIDERS):
        print(f"usage: python -m zoo.record.certificate DIR [{'|'.join(PROVIDERS)}]", file=sys.stderr)
        return 2
    try:
        certificate = certify(arguments[0], arguments[1] if len(arguments) > 1 else None)
    except (OSError, ValueError) as error:
        print(f"{error}\n  Copy the directory again, or export the model again.", file=sys.stderr)
        return 2
    print(json.dumps(certificate.as_dict(), indent=2))
    return 0 if certificate.passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
