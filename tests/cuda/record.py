"""Record the kernels of the installed CUDA provider in ``exporters/target/kernels/cuda.json``: python -m tests.cuda.record."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnxruntime

import exporters.target.kernels
from exporters.data.proto import IR_VERSIONS
from tests.cuda.build import build

TABLE = Path(exporters.target.kernels.__file__).with_name("cuda.json")
PROVIDER = "CUDAExecutionProvider"
DOMAINS = ("", "com.microsoft")


def kernels() -> dict[str, list[dict[str, Any]]]:
    """The kernels of the provider by operator, of those versions of standard operators that a graph of ours can use.

    Each has its versions and, for each input and output by index, the element types that it takes.
    """
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    schemas: dict[tuple[str, str], dict[int, Any]] = defaultdict(dict)
    for schema in state.get_all_operator_schema():
        schemas[schema.domain, schema.name][schema.since_version] = schema
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for kernel in state.get_all_opkernel_def():
        versions = schemas.get((kernel.domain, kernel.op_name))
        if kernel.provider != PROVIDER or kernel.domain not in DOMAINS or versions is None:
            continue
        first, last = kernel.version_range
        for since in used_versions(versions):
            # An open range begins with the version that it was registered for, and covers no other.
            if since == first or (first < since <= last < 2**31 - 1):
                row = {"since": since, "types": types_of(versions[since], kernel.type_constraints)}
                name = f"{kernel.domain}:{kernel.op_name}" if kernel.domain else kernel.op_name
                if row not in found[name]:
                    found[name].append(row)
    return dict(sorted(found.items()))


def used_versions(versions: dict[int, Any]) -> set[int]:
    """The versions of an operator that the opsets in use have."""
    return {max((since for since in versions if since <= opset), default=0) for opset in IR_VERSIONS} - {0}


def types_of(schema: Any, constraints: dict[str, list[str]]) -> dict[str, list[str]]:
    """The element types by ``in0``, ``out0`` and so on; ``in*`` stands for all that follow."""
    result = {}
    for side, parameters in (("in", schema.inputs), ("out", schema.outputs)):
        for index, parameter in enumerate(parameters):
            allowed = constraints.get(parameter.typeStr, constraints.get(parameter.name))
            if allowed is None:
                continue
            variadic = str(parameter.option).endswith("Variadic")
            names = [name.removeprefix("tensor(").removesuffix(")") for name in allowed]
            result[f"{side}*" if variadic else f"{side}{index}"] = [name for name in names if "(" not in name]
    return result


def kernels_of_provider(libraries: Path) -> dict[str, Any]:
    """The table of the installed provider. ``libraries`` are those of :mod:`tests.cuda.build`."""
    command = [sys.executable, "-m", "tests.cuda.record", "--print"]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
    ran = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
    return {
        "source": f"onnxruntime {onnxruntime.__version__}",
        "provider": PROVIDER,
        "kernels": json.loads(ran.stdout),
    }


def main() -> None:
    """Write the table, one operator a line."""
    with TemporaryDirectory() as place:
        build(Path(place))
        table = kernels_of_provider(Path(place))
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(rows)}" for name, rows in table["kernels"].items())
    head = "".join(f" {json.dumps(key)}: {json.dumps(table[key])},\n" for key in ("source", "provider"))
    TABLE.write_text(f'{{\n{head} "kernels": {{\n{lines}\n }}\n}}\n', "utf-8")


if __name__ == "__main__":
    if "--print" in sys.argv:
        print(json.dumps(kernels()))
    else:
        main()
