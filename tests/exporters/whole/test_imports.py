"""What an export imports: the parts that its options ask for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

UNUSED = (
    "exporters.quality", "exporters.rounding.calibration", "exporters.steps.adapters",
    "exporters.steps.rounding", "zoo.checkpoints.open_checkpoint", "zoo.configs.exporting", "zoo.families.registry",
    "zoo.components.mixture", "zoo.components.mamba", "zoo.components.rwkv",
)  # fmt: skip

EXPORT = """
import sys
from pathlib import Path
from exporters.export import export
from specs.language.load import load
export(load("tiny-gpt"), Path(sys.argv[1]))
print(*(name for name in sys.argv[2:] if name in sys.modules))
"""


def test_a_float_export_with_random_weights_imports_nothing_that_rounds_reads_or_judges(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", EXPORT, str(tmp_path / "x"), *UNUSED]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == []
