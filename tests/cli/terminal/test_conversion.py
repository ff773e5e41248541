"""Values of options are converted without pydantic where they need no conversion, and as Typer does elsewhere."""

import subprocess
import sys

import pytest

from tests.cli.program import refused


def test_texts_and_absent_options_need_no_validators() -> None:
    code = (
        "import sys\n"
        "sys.argv = ['zoo', 'list', 'llama', '3', '--architecture', 'decoder']\n"
        "from cli.app import app\n"
        "try: app()\n"
        "except SystemExit as end: assert not end.code\n"
        "assert not {'typer._adapters', 'pydantic.main'} & {*sys.modules}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "llama-3-8b" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["list", "--since", "soon"], "--since"),
        (["report", "tiny-gpt", "--batch", "0"], "--batch"),
        (["show"], "Missing argument 'SPEC'"),
        (["validate"], "Missing argument"),
    ],
)
def test_wrong_and_missing_values_are_refused(arguments: list[str], said: str) -> None:
    assert said in refused(*arguments)
