"""A batch without rows is an error of the runtime, not the end of the process, wherever attention is one operation."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from exporters.export import export
from exporters.steps.card import ROWS
from exporters.steps.options import ExportOptions
from tests.zoo.tiny import gpt2
from zoo.files.card import CARD

RUN = """
import sys
import numpy as np, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
given = {each.name: np.zeros((0, 2, 0, 16), np.float32) for each in session.get_inputs()}
given |= {name: np.ones((0, 4), np.int64) for name in ("input_ids", "attention_mask")}
session.run(None, given)
"""


def test_an_empty_batch_is_an_error(tmp_path: Path) -> None:
    export(gpt2(d_model=32), tmp_path / "x", ExportOptions(target="cpu", verify=False))
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path / "x/model.onnx")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done
    assert "attention/Gather' Status Message: indices element out of data bounds" in done.stderr


def test_the_card_states_that_a_batch_has_rows(tmp_path: Path) -> None:
    export(gpt2(), tmp_path / "x", ExportOptions(weights="none", verify=False))
    assert ROWS in (tmp_path / "x" / CARD).read_text()
