"""``zoo studio``: what it prints, and what it refuses before it serves."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.cli.process import ZOO, environment
from tests.cli.program import invoke


@pytest.mark.slow
def test_the_address_that_it_prints_answers_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    settings = environment(PYTHONPATH=":".join(filter(None, sys.path)))
    command = [*ZOO, "studio", "tiny-gpt", "--no-browser", "--json"]
    process = subprocess.Popen(command, cwd=tmp_path, env=settings, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    address = json.loads("".join(process.stdout.readline() for _ in range(3)))["address"]
    assert address.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(address, timeout=200) as page:
        assert b"zoo studio" in page.read()
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen("/".join([*address.split("/")[:3], ""]), timeout=200)
    process.send_signal(signal.SIGINT)
    assert process.wait() in (0, 130)


def test_a_wrong_spec_and_a_port_in_use_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused = invoke("studio", "gtp2", "--no-browser")
    assert (refused.exit_code, "Did you mean 'gpt2'?" in refused.output) == (2, True)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        busy = invoke("studio", "--no-browser", "--port", port)
    assert busy.exit_code == 2
    assert f"--port {port} is in use." in busy.output


def test_without_its_packages_it_says_how_to_install_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("cli.studio.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = invoke("studio", "--no-browser")
    assert result.exit_code == 2
    assert "pip install 'zoo[studio]'" in result.output
