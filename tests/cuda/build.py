"""The libraries that ONNX Runtime's CUDA and TensorRT providers link to, built from ``runtime.c``."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import onnxruntime

SOURCE = Path(__file__).with_name("runtime.c")
PROVIDERS = ("cuda", "tensorrt")
"""The TensorRT provider is never used, but ONNX Runtime lists no kernels without loading it."""


def build(directory: Path) -> None:
    """Build the libraries into a directory, which then belongs into LD_LIBRARY_PATH. Needs a C compiler and binutils."""
    installed = Path(onnxruntime.__file__).parent / "capi"
    needed: dict[str, set[str]] = {}
    missing: set[str] = set()
    for provider in PROVIDERS:
        library = installed / f"libonnxruntime_providers_{provider}.so"
        dynamic = _output("readelf", "--dynamic", "--wide", str(library))
        for name in re.findall(r"Shared library: \[(lib(?:cu|nv)[^\]]*)\]", dynamic):
            needed.setdefault(name, set())
        for symbol in _output("nm", "--dynamic", "--undefined-only", str(library)).split():
            name, _, version = symbol.partition("@")
            if re.fullmatch(r"(__)?(cu|nv)\w+", name) and version:
                needed.setdefault(version, set()).add(name)
            elif re.fullmatch(r"cu\w+|create(Infer|NvOnnx)\w+|get(InferLibVersion|PluginRegistry)", name):
                missing.add(name)
    source = SOURCE.read_text("utf-8")
    defined = set(re.findall(r"^(?:int|const char \*|Pointer \*)\s*(\w+)\(", source, re.MULTILINE))
    for library_name, names in needed.items():
        rest = "".join(f"int {name}() {{ return 0; }}\n" for name in sorted((names | missing) - defined))
        code = directory / f"{library_name}.c"
        code.write_text(source + rest, "utf-8")
        script = directory / f"{library_name}.map"
        script.write_text(f"{library_name} {{ global: *; }};\n", "utf-8")
        _output(
            "gcc", "-w", "-shared", "-fPIC", "-o", str(directory / library_name), str(code),
            f"-Wl,-soname,{library_name}", f"-Wl,--version-script={script}",
        )  # fmt: skip


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
