"""A request to end that a library's callback swallows is heard at the next stage of the work."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import signal
from cli import main
from cli.terminal.progress import stage_progress
from pydantic import BaseModel, Discriminator, Tag
from typing import Annotated
from zoo.core.progress import Stage

class Entry(BaseModel):
    layers: Annotated[Annotated[int, Tag("count")] | Annotated[str, Tag("name")], Discriminator(lambda layers: ask() or "count")]

def ask():
    global asked
    if asked is False:
        asked = True
        signal.raise_signal(NUMBER)

asked = True
entry = Entry(layers=1)
asked = False

class App:
    def find_spec(self, name, path=None, target=None):
        if name == "cli.app":
            entry.model_dump()
            with stage_progress(quiet=True) as show:
                print("swallowed")
                show(Stage("next"))
                print("went on")

import sys
sys.meta_path.insert(0, App())
main.main()
"""


@pytest.mark.parametrize(
    ("name", "status", "told"), [("SIGINT", 130, "interrupted\n"), ("SIGTERM", 143, "terminated\n")]
)
def test_a_signal_in_a_callback_takes_effect_at_the_next_stage(name: str, status: int, told: str) -> None:
    code = CODE.replace("NUMBER", f"signal.{name}")
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (status, "swallowed\n", told)
