"""Real clients: each in an environment of its own, driven by a script that reads a request and prints an answer, as JSON."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parents[1] / ".clients"
"""Made by ``make test-clients``."""


@dataclass(frozen=True)
class Client:
    """A client's environment, and the script that drives it."""

    environment: str
    program: str
    script: str

    def __call__(self, directory: Path, **request: Any) -> Any:
        """What the client makes of a directory, or an error with all it printed."""
        place = ENVIRONMENTS / self.environment
        program = place / "bin" / self.program
        assert program.exists(), f"{program} is missing: run `make test-clients`"
        done = subprocess.run(
            [program, HERE / self.script], cwd=place,
            input=json.dumps({"directory": str(directory), **request}),
            capture_output=True, encoding="utf-8", timeout=200, check=False,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": ""},
        )  # fmt: skip
        assert done.returncode == 0, f"{self.script} failed:\n{done.stdout}\n{done.stderr}"
        return json.loads(done.stdout.splitlines()[-1])


GENAI = Client("genai", "python", "drive_genai.py")
GENAI_MTP = Client("genai", "python", "drive_genai_mtp.py")
OPTIMUM = Client("optimum", "python", "drive_optimum.py")
GLINER = Client("optimum", "python", "drive_gliner.py")
SENTENCE_TRANSFORMERS = Client("optimum", "python", "drive_sentence_transformers.py")
VLLM = Client("vllm", "python", "drive_vllm.py")
TRANSFORMERS_JS = Client("transformers-js", "node", "drive_transformers_js.mjs")
