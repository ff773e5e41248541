"""``zoo`` as a process: what it imports, pipes, signals, completion."""

import os
import subprocess
import sys

import pytest

from tests.thinned import one_in

ZOO = [sys.executable, "-c", "from cli.main import main; main()"]


def zoo(*arguments, **options):
    return subprocess.run([*ZOO, *arguments], capture_output=True, text=True, **options)


@one_in(3)
@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["list"], ["show", "gpt2"], ["validate", "t5-small"], ["schema"], ["params", "--help"],
     ["diff", "gpt2", "gpt2"]],
)  # fmt: skip
def test_commands_without_tensors_do_not_import_torch(arguments):
    code = (
        "import atexit, os, sys\n"
        "os._exit = sys.exit\n"
        "from cli.main import main\n"
        "heavy = {'torch', 'onnx', 'onnx_ir', 'onnxruntime', 'onnxscript', 'numpy', 'safetensors'}\n"
        "atexit.register(lambda: print(sorted(heavy & set(sys.modules)), file=sys.stderr))\n"
        f"sys.argv[1:] = {arguments}\n"
        "main()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0
    assert result.stderr == "[]\n"


@pytest.mark.parametrize("command", ["list", "schema"])
def test_a_command_imports_no_other(command):
    code = (
        "import atexit, os, sys\n"
        "os._exit = sys.exit\n"
        "from cli.main import main\n"
        "from cli.terminal.command_table import FUNCTIONS\n"
        "modules = {place.partition(':')[0] for place in FUNCTIONS.values()}\n"
        "atexit.register(lambda: print(sorted(modules & set(sys.modules)), file=sys.stderr))\n"
        f"sys.argv[1:] = [{command!r}]\n"
        "main()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0
    assert result.stderr == f"['cli.commands.{command}']\n"


@one_in(3)
@pytest.mark.parametrize("arguments", [["list"], ["schema"], ["show", "t5-small"]])
def test_a_closed_pipe_is_not_an_error(arguments):
    read, write = os.pipe()
    os.close(read)
    result = subprocess.run([*ZOO, *arguments], stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert result.stderr == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_reported():
    with open("/dev/full", "w") as full:
        result = subprocess.run([*ZOO, "show", "gpt2"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (result.returncode, result.stderr) == (2, "Cannot write: No space left on device\n")


@pytest.mark.parametrize("module", ["cli.app", "specs.language.load", "torch"])
def test_ctrl_c_at_any_time_ends_with_one_line(module):
    code = (
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "sys.argv[1:] = ['params', 'gpt2']\n"
        "from cli.main import main\n"
        "main()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "interrupted\n")


def test_presets_and_files_complete(tmp_path):
    (tmp_path / "gpt-mine.yaml").touch()
    (tmp_path / "gpt-notes.txt").touch()
    (tmp_path / "gpt-specs").mkdir()
    environment = {
        **os.environ,
        "_ZOO_COMPLETE": "complete_bash",
        "COMP_WORDS": "zoo show gpt",
        "COMP_CWORD": "2",
    }
    result = zoo(cwd=tmp_path, env={**environment, "PYTHONPATH": os.getcwd()})
    names = result.stdout.split()
    assert {"gpt2", "gpt3-175b", "gpt-mine.yaml", "gpt-specs/"} <= set(names)
    assert "gpt-notes.txt" not in names
    assert "bert-base" not in names


def test_the_garbage_collector_waits_for_the_imports():
    code = (
        "import gc, cli.main as program\n"
        "program._collect_seldom()\n"
        "gc.collect()\n"
        "print(gc.get_threshold()[0])\n"
        "made = [[] for _ in range(program.IMPORTED + 1000)]\n"
        "print(gc.get_threshold()[0], gc.callbacks)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "1000000\n200000 []\n"
