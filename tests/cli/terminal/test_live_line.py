"""The live line is one line, gone when the work is done, and silent without a terminal."""

import re
import subprocess
import sys
from pathlib import Path

from tests.cli.process import in_terminal

CODE = """
import time
from cli.terminal.progress import stage_progress
from zoo.core.progress import Stage
with stage_progress(quiet=False) as show:
    show(Stage("tracing"))
    show(Stage("writing model.onnx.data", 5_000_000, 20_000_000))
    time.sleep(0.3)
print("done")
"""


def test_it_shows_the_step_and_its_progress_in_one_line(tmp_path: Path) -> None:
    out, err = in_terminal([sys.executable, "-c", CODE], tmp_path, COLUMNS="80")
    assert out.strip() == "done"
    erased = err.rpartition("\n")[2]  # the cursor has left the line, and comes back to erase it
    assert erased.endswith("\x1b[1A\x1b[2K")
    assert err.count("\n") == 1
    frames = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", err).split("\r")
    assert any("tracing" in frame for frame in frames)
    assert any(
        re.search(r"writing model\.onnx\.data .*25%  5\.0 MB of 20\.0 MB  \d+ s", frame) for frame in frames
    )
    assert max(map(len, frames)) <= 80


def test_it_is_silent_without_a_terminal() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("done\n", "")


MANY = """
from cli.terminal.progress import counted_progress
with counted_progress("cards", quiet={quiet}) as show:
    for done in range(26):
        show(done, 25)
"""


def test_equal_steps_are_a_line_for_each_tenth_without_a_terminal() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MANY.format(quiet=False)], capture_output=True, text=True, check=True
    )
    tenths = [3, 5, 8, 10, 13, 15, 18, 20, 23, 25]
    assert done.stderr.splitlines() == [f"[{count}/25] cards" for count in tenths]
    quiet = subprocess.run(
        [sys.executable, "-c", MANY.format(quiet=True)], capture_output=True, text=True, check=True
    )
    assert quiet.stderr == ""
