"""Where the CUDA provider places the nodes of graphs, as JSON: python -m tests.cuda.place GRAPH... (see ``placed``)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx

PROVIDERS = ("CUDAExecutionProvider", "CPUExecutionProvider")


def placed(graphs: Sequence[Path], libraries: Path) -> list[dict[str, Any]]:
    """For each graph the operations on the CPU, the number of copies, and why it cannot be captured as a CUDA graph.

    ``libraries`` are those of :mod:`tests.cuda.build`. A graph that the provider refuses has an ``error`` instead.
    """
    command = [sys.executable, "-m", "tests.cuda.place", *map(str, graphs)]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    found: list[dict[str, Any]] = json.loads(ran.stdout)
    return found


def _placement(path: Path) -> dict[str, Any]:
    import onnxruntime

    optimized = path.with_name(f"{path.name}.optimized")
    try:
        session = onnxruntime.InferenceSession(path, _options(optimized), providers=PROVIDERS)
        assigned = session.get_provider_graph_assignment_info()
    except Exception as error:
        return {"error": str(error)}
    on_cpu = Counter(
        node.op_type for part in assigned if part.ep_name != PROVIDERS[0] for node in part.get_nodes()
    )
    nodes = onnx.load(optimized, load_external_data=False).graph.node
    copies = [node.input[0] for node in nodes if node.op_type.startswith("Memcpy")]
    try:
        capturing = [(PROVIDERS[0], {"enable_cuda_graph": "1"}), PROVIDERS[1]]
        onnxruntime.InferenceSession(path, _options(), providers=capturing)
        not_captured = ""
    except Exception as error:
        not_captured = str(error)
    return {"on_cpu": dict(on_cpu), "copies": copies, "not_captured": not_captured}


def _options(optimized: Path | None = None) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    if optimized is not None:
        options.optimized_model_filepath = str(optimized)
        data = f"{optimized.name}.data"
        options.add_session_config_entry("session.optimized_model_external_initializers_file_name", data)
    return options


if __name__ == "__main__":
    print(json.dumps([_placement(Path(name)) for name in sys.argv[1:]]))
