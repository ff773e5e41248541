"""The table of built-in kinds and the files that register them."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

import specs.kinds
from specs.base import registry

FILES = sorted({(slot, file) for slot, files in specs.kinds.FILES.items() for file in files.values()})


@pytest.mark.parametrize(("slot", "file"), FILES)
def test_each_file_registers_the_kinds_that_the_table_says(slot: str, file: str) -> None:
    name = f"specs.kinds.{file}"
    importlib.import_module(name)
    registered = [kind for kind, entry in registry._slots[slot].imported() if entry.spec.__module__ == name]
    assert registered == [kind for kind, place in specs.kinds.FILES[slot].items() if place == file]


def test_no_file_registers_kinds_that_the_table_lacks() -> None:
    for module in pkgutil.iter_modules(specs.kinds.__path__):
        importlib.import_module(f"specs.kinds.{module.name}")
    registered = {
        (slot, kind): entry.spec.__module__
        for slot in registry.slots()
        for kind, entry in registry._slots[slot].imported()
        if entry.spec.__module__.startswith("specs.kinds.")
    }
    listed = {(slot, kind) for slot, files in specs.kinds.FILES.items() for kind in files}
    assert listed <= registered.keys()
    others = {(slot, registered[slot, kind]) for slot, kind in registered.keys() - listed}
    assert others == {("norm", "specs.kinds.norm"), ("residual", "specs.kinds.residual")}


def test_a_spec_imports_the_files_of_its_kinds() -> None:
    code = (
        "import sys\n"
        "from zoo.configs.named_model import named_model\n"
        "named_model({!r})\n"
        "print(*(name.removeprefix('specs.kinds.') for name in sys.modules if name.startswith('specs.kinds.')))"
    )
    imported = [
        set(
            subprocess.run(
                [sys.executable, "-c", code.format(name)], capture_output=True, text=True, check=True
            ).stdout.split()
        )
        for name in ("bert-tiny", "falcon-h1-0.5b")
    ]
    others = {
        "mamba2", "mixture", "latent", "waveform", "rope", "patch_boxes", "token_heads", "rwkv", "conformer",
    }  # fmt: skip
    assert imported[0] & others == set()
    assert imported[0] > {"norm", "residual"}
    assert imported[1] & others == {"mamba2", "rope"}


def test_a_kind_that_is_registered_again_is_refused_before_its_file_is_imported() -> None:
    code = (
        "from typing import Literal\n"
        "import specs.kinds.mixer\n"
        "from specs.base.registry import register\n"
        "class Mine(specs.kinds.mixer.MixerKind):\n"
        "    kind: Literal['mamba'] = 'mamba'\n"
        "register('mixer')(Mine)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (
        "mixer kind 'mamba' is registered twice: by specs.kinds.mamba.Mamba and by __main__.Mine"
        in done.stderr
    )
