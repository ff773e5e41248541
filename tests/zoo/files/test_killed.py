"""Whenever an export is killed, the earlier or the new one stands whole, and the user's files are there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.process import environment


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("way", ["kill", "kill-in-two-steps", "interrupt"])
def test_an_end_at_every_file_event(tmp_path: Path, way: str) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "tests.zoo.files.killed", tmp_path, way],
        env=environment(OMP_NUM_THREADS="1"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 100
