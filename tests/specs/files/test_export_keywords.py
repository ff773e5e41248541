"""The keywords of ``zoo.export``: those of the table of options, and what type checkers make of them."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import zoo
from specs.files.export_keywords import ExportKeywords
from specs.files.export_options import OptionTable
from tests.specs.digests import ROOT, UPDATE
from tests.specs.keywords import FILE, keywords_text

PROGRAM = '''
from pathlib import Path
from typing import Unpack

import zoo


def mine(path: Path, **options: Unpack[zoo.ExportKeywords]) -> float:
    """A function of a user that hands options on."""
    written = zoo.export("gpt2", path, **options)
    return written.verification.max_abs if written.verification else 0.0


try:
    mine(Path("out"), target="cpu", precision="int8", calibrate=Path("text.txt"), engines=["ort"], max_kl=0.1)
except zoo.UserError as error:
    print(error)
zoo.export(zoo.build("gpt2", weights=Path("model.safetensors")), "out", progress=print)
zoo.verify("out", progress=print)
print(zoo.presets("moe")[0].parameters, zoo.load("gpt2").d_model, zoo.__version__)
'''
WRONG = {
    'zoo.export("gpt2", "out", precison="int8")': 'Unexpected keyword argument "precison" for "export"',
    'zoo.export("gpt2", "out", precision="int3")': '"precision" to "export" has incompatible type',
    'zoo.export("gpt2", "out", seed="1")': 'Argument "seed" to "export" has incompatible type "str"',
    'zoo.build("gpt2", dtype="fp16")': 'Argument "dtype" to "build" has incompatible type "str"',
    'zoo.verify("out", engine="ort")': 'Unexpected keyword argument "engine" for "verify"',
    'zoo.exprot("gpt2", "out")': 'Module has no attribute "exprot"',
}


def test_they_are_written_from_the_table() -> None:
    assert FILE.read_text("utf-8") == keywords_text(), UPDATE
    assert [*ExportKeywords.__annotations__] == [*OptionTable.model_fields]


def test_help_names_each_and_no_addresses() -> None:
    text = zoo.export.__doc__ or ""
    assert sorted(re.findall(r"``(\w+)``", text.partition("Options")[2])) == sorted(
        [*OptionTable.model_fields, "model"]
    )
    for name in zoo.__all__:
        if inspect.isfunction(function := getattr(zoo, name)):
            assert " at 0x" not in str(inspect.signature(function))
    assert "**options: 'Unpack[ExportKeywords]'" in str(inspect.signature(zoo.export))


def test_a_module_takes_no_weights(tmp_path: Path) -> None:
    model = zoo.build("tiny-gpt", weights="random")
    with pytest.raises(zoo.UserError, match="exported with its own weights\n  Leave weights out"):
        zoo.export(model, tmp_path / "out", weights="random")


@pytest.mark.slow
def test_a_type_checker_knows_them(tmp_path: Path) -> None:
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(PROGRAM)
    wrong.write_text("import zoo\n" + "".join(f"{line}\n" for line in WRONG))
    config = tmp_path / "mypy.ini"
    config.write_text(f"[mypy]\nstrict = true\nmypy_path = {ROOT}\nfollow_imports = silent\n")
    command = [sys.executable, "-m", "mypy", "--config-file", str(config), str(right), str(wrong)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    lines = done.stdout.splitlines()[:-1]
    errors = [line for line in lines if ": error: " in line]
    assert len(errors) == len(WRONG), done.stdout
    for number, (error, message) in enumerate(zip(errors, WRONG.values(), strict=True), 2):
        assert error.startswith(f"wrong.py:{number}: error: "), error
        assert message in error
