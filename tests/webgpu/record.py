"""Record the kernels of the WebGPU provider's plugin in ``exporters/target/kernels/webgpu.json``: python -m tests.webgpu.record.

The plugin lists its kernels once it has an adapter; the engine ``webgpu`` must be installed.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import exporters.target.kernels
from exporters.target.providers import WEBGPU
from exporters.verification.engines.find import interpreter_of
from exporters.verification.engines.table import ENGINES, SWIFTSHADER
from tests.cuda.record import DOMAINS, types_of, used_versions

TABLE = Path(exporters.target.kernels.__file__).with_name("webgpu.json")

PROGRAM = """
import json
import onnxruntime
import onnxruntime_ep_webgpu
from onnxruntime.capi import onnxruntime_pybind11_state as state

onnxruntime.set_default_logger_severity(4)
onnxruntime.register_execution_provider_library("webgpu", onnxruntime_ep_webgpu.get_library_path())
device = next(each for each in onnxruntime.get_ep_devices() if each.ep_name == "WebGpuExecutionProvider")
side = lambda parameters: [[each.typeStr, each.name, str(each.option)] for each in parameters]
print(json.dumps({
    "source": f"onnxruntime-ep-webgpu {device.ep_metadata['version']} with onnxruntime {onnxruntime.__version__}",
    "kernels": [[each.domain, each.op_name, list(each.version_range), each.type_constraints]
                for each in state.get_registered_ep_kernel_defs("WebGpuExecutionProvider")],
    "schemas": [[each.domain, each.name, each.since_version, side(each.inputs), side(each.outputs)]
                for each in state.get_all_operator_schema()],
}))
"""


def listed() -> dict[str, Any]:
    """The kernels and the schemas of the operators, as the plugin's environment lists them."""
    engine = ENGINES["webgpu"]
    python = interpreter_of(engine)
    assert python is not None, "the engine webgpu is not installed: `zoo engines` says how"
    environment = {**os.environ, "ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER": "1", "PYTHONPATH": ""}
    environment.setdefault("VK_ICD_FILENAMES", SWIFTSHADER)
    ran = subprocess.run([python, "-c", PROGRAM], check=True, env=environment, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def recorded() -> dict[str, Any]:
    """The table: the kernels of those versions of standard operators that a graph of ours can use."""
    found = listed()
    schemas: dict[tuple[str, str], dict[int, Any]] = defaultdict(dict)
    for domain, name, since, *sides in found["schemas"]:
        inputs, outputs = (
            [SimpleNamespace(typeStr=kind, name=label, option=option) for kind, label, option in side]
            for side in sides
        )
        schemas[domain, name][since] = SimpleNamespace(inputs=inputs, outputs=outputs)
    table: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for domain, name, (first, last), constraints in found["kernels"]:
        versions = schemas.get((domain, name))
        if domain not in DOMAINS or versions is None:
            continue
        for since in used_versions(versions):
            # An open range begins with the version that it was registered for, and covers no other.
            if since == first or (first < since <= last < 2**31 - 1):
                row = {"since": since, "types": types_of(versions[since], constraints)}
                label = f"{domain}:{name}" if domain else name
                if row not in table[label]:
                    table[label].append(row)
    return {"source": found["source"], "provider": WEBGPU, "kernels": dict(sorted(table.items()))}


def main() -> None:
    """Write the table, one operator a line."""
    table = recorded()
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(rows)}" for name, rows in table["kernels"].items())
    head = "".join(f" {json.dumps(key)}: {json.dumps(table[key])},\n" for key in ("source", "provider"))
    TABLE.write_text(f'{{\n{head} "kernels": {{\n{lines}\n }}\n}}\n', "utf-8")


if __name__ == "__main__":
    main()
