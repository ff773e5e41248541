"""The JSON of every command has the keys that ``docs/reference/json.md`` lists."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cli.terminal.command_table import FUNCTIONS
from tests.cli.program import invoke

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "json.md"
KEYS = {
    name: re.findall(r"`([a-z_]+\??)`", keys)
    for name, keys in re.findall(r"(?m)^\| `zoo (\w+)` \| (.*) \|$", PAGE.read_text())
}
GPT = "tiny-gpt"
COMMANDS = {
    "list": ["gpt2"],
    "show": [GPT],
    "schema": [],
    "new": ["mine"],
    "params": [GPT],
    "check": [GPT],
    "report": [GPT],
    "diff": [GPT, "--set", "decoder.layers=2"],
    "draw": [GPT],
    "gallery": [GPT, "-o", "gallery.html"],
    "attend": [GPT, "--ids", "1,2"],
    "compare": [GPT, "--steps", "1", "--batch", "1"],
    "build": [GPT, "-o", "built"],
    "export": [GPT, "-o", "out"],
    "verify": ["out"],
    "eval": ["out"],
    "run": ["out", "--ids", "1,2", "--max-new-tokens", "1"],
    "bench": ["out", "--seconds", "0.05", "--lengths", "4", "--pasts", "2"],
    "engines": [],
    "convert": ["gpt2.yaml", "-o", "checkpoint"],
    "import": ["checkpoint"],
    "adapt": ["checkpoint", "--set", "decoder.layers=1", "-o", "adapted"],
    "init": [GPT],
    "make": ["--plan"],
    "cache": [],
    "catalog": ["out"],
    "sign": ["out", "--key", "key.pem"],
    "push": ["out", "--to", "place"],
    "pull": ["place", "-o", "pulled"],
}  # fmt: skip
"""The arguments of each command, in an order in which each finds what it needs."""

VERDICTS = {"validate", "params", "check", "report", "compare", "build", "export", "verify", "eval", "bench",
            "make", "catalog"}  # fmt: skip


def run(*arguments: str) -> tuple[int, Any]:
    result = invoke(*arguments, "--json")
    return result.exit_code, json.loads(result.stdout)


def test_the_page_lists_every_command() -> None:
    assert {*KEYS} == {*FUNCTIONS} - {"help"}
    assert {name for name, keys in KEYS.items() if {"passed", "passed?"} & {*keys}} == VERDICTS
    others = {*FUNCTIONS} - {*COMMANDS}
    assert others == {
        "help",
        "validate",
        "compile",
        "studio",
    }  # compile needs TensorRT, and a studio does not end


def test_invalid_input_is_a_list_of_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("show", "params", "export", "run", "verify"):
        status, data = run(name, "nothing")
        assert (status, [*data]) == (2, ["errors"])
        assert all(isinstance(error["message"], str) for error in data["errors"])
    status, data = run("validate", GPT, "nothing")
    assert (status, data["passed"], [spec["passed"] for spec in data["specs"]]) == (2, False, [True, False])
    assert {*data["specs"][0]} == {"name", "passed", "unchecked", "errors"}
    status, data = run("params", GPT, "--set", "expect.parameters=7")
    assert (status, data["passed"], data["name"]) == (1, False, "tiny-gpt+expect.parameters=7")


@pytest.mark.slow
def test_every_command_has_its_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ZOO_CACHE_DIR", str(tmp_path / "cache"))
    Path("gpt2.yaml").write_text(
        "extends: gpt2\nname: small\nvocab_size: 64\nd_model: 16\ncontext_length: 32\n"
        "decoder: {layers: 2, block: {attention: {heads: 2}, feed_forward: {hidden: 32}}}\n"
    )
    key = ["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "key.pem"]
    subprocess.run(key, check=True, capture_output=True)
    for name, arguments in COMMANDS.items():
        status, data = run(name, *arguments)
        assert status == (name == "diff"), (name, data)
        record = data[0] if name == "list" else data
        needed = {key for key in KEYS[name] if not key.endswith("?")} - (
            {"errors"} if name == "export" else set()
        )
        assert needed <= {*record}, (name, needed - {*record})
        if "passed" in needed:
            assert record["passed"] is True, name
