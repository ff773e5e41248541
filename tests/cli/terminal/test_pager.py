"""Long listings in a terminal are shown in the user's pager."""

import os
import pty
import sys

import pytest


def in_terminal(*arguments: str, **variables: str) -> str:
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(COLUMNS="80", LINES="24", **variables)
        os.execv(sys.executable, [sys.executable, "-c", "from cli.main import main; main()", *arguments])
    shown = b""
    while True:
        try:
            part = os.read(terminal, 2**16)
        except OSError:  # the terminal is closed
            break
        if not part:
            break
        shown += part
    os.waitpid(child, 0)
    return shown.decode()


@pytest.mark.parametrize(("words", "paged"), [((), True), (("bert-tiny",), False)])
def test_a_listing_that_is_longer_than_the_terminal_goes_through_the_pager(words, paged):
    shown = in_terminal("list", *words, PAGER="sed 's/^/paged: /'")
    assert shown.startswith("paged: ") == paged
    assert shown.count("paged: ") > 500 or not paged
    assert "zoo new my-model" in shown.split("preset")[-1]
