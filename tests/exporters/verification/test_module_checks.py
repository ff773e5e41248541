"""A wrong module agrees with its own export: checks of its behaviour catch it before anything is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from exporters.export import export
from exporters.steps.options import ExportOptions
from exporters.verification.module_checks import BehaviourError, check_module
from specs.forms.resolved import resolved
from specs.language.writing import dump
from specs.model.model import Model
from tests.cli.program import invoke
from tests.thinned import one_in
from tests.zoo.checks.test_behaviour import always_causal, bert, has_an_unused_parameter
from tests.zoo.tiny import BLOCK, gpt2
from zoo.checks import check_behaviour
from zoo.components.mixer import MixerContext
from zoo.components.rwkv import RWKV7

Patch = pytest.MonkeyPatch


def rwkv7() -> Model:
    """A decoder of two layers of RWKV-7, neither of which shares values."""
    mixer = {"kind": "rwkv7", "heads": 2, "head_dim": 3, "decay_rank": 3, "update_rank": 1, "gate_rank": 5}
    layers = {"layers": 2, "block": {**BLOCK, "attention": None, "mixer": mixer}}
    return gpt2(decoder=layers, position={"kind": "none"})


def takes_the_first_values(patch: Patch) -> None:
    def value(self: RWKV7, x: Tensor, context: MixerContext) -> Tensor:
        return context.left.setdefault(0, self.value(x))

    patch.setattr(RWKV7, "_value", value)


@pytest.mark.slow
def test_layers_without_a_share_of_the_first_values_use_their_own(monkeypatch: Patch) -> None:
    assert check_behaviour(rwkv7()).passed
    takes_the_first_values(monkeypatch)
    (failed,) = (each for each in check_behaviour(rwkv7()).checks if each.status == "failed")
    unused = "decoder.blocks.1.mixer.value_mix, decoder.blocks.1.mixer.value.weight"
    assert failed.reason == f"no gradient for {unused}"


@one_in(3)
@pytest.mark.parametrize("options", [{}, {"weights": "none"}, {"via": "torch"}], ids=str)
def test_a_wrong_module_is_not_exported(options: dict[str, Any], tmp_path: Path, monkeypatch: Patch) -> None:
    takes_the_first_values(monkeypatch)
    with pytest.raises(BehaviourError) as error:
        export(rwkv7(), tmp_path / "x", ExportOptions(**options))
    text = str(error.value)
    assert text.startswith(
        "tiny-gpt2 does not behave as its spec says, on a reduced model with probing weights:\n"
    )
    assert "gradients: no gradient for decoder.blocks.1.mixer.value_mix" in text
    assert text.endswith("  Or pass verify=False to export the model as it is.")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("sabotage", "spec", "failed"),
    [(has_an_unused_parameter, gpt2, "gradients"), (always_causal, bert, "bidirectional")],
)
def test_other_wrong_modules_are_caught(sabotage: Any, spec: Any, failed: str, monkeypatch: Patch) -> None:
    check_module(spec())
    sabotage(monkeypatch)
    with pytest.raises(BehaviourError, match=rf"\n  {failed}: "):
        check_module(spec())


def test_unverified_exports_are_not_checked(tmp_path: Path, monkeypatch: Patch) -> None:
    takes_the_first_values(monkeypatch)
    assert export(rwkv7(), tmp_path / "x", ExportOptions(weights="none", verify=False)).verification is None


def test_the_command_prints_the_checks_and_ends_with_status_1(tmp_path: Path, monkeypatch: Patch) -> None:
    takes_the_first_values(monkeypatch)
    path = tmp_path / "spec.yaml"
    path.write_text(dump(resolved(rwkv7())))
    done = invoke("export", str(path), "-o", str(tmp_path / "x"))
    assert done.exit_code == 1
    assert "Or pass --no-verify to export the model as it is.\nNothing was written." in done.stderr
    done = invoke("export", str(path), "-o", str(tmp_path / "x"), "--json")
    found = json.loads(done.stdout)
    assert done.exit_code == 1
    assert [each["name"] for each in found["behaviour"]["checks"] if each["status"] == "failed"] == [
        "gradients"
    ]
