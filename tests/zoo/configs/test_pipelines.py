"""The default models of transformers.js' pipelines: those that specs express, in and out, and those that are refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from exporters.export import export
from exporters.steps.options import ExportOptions
from specs.forms.canonical import canonical, differences
from specs.language.load import load
from tests.cli.program import invoke
from tests.parity.families import pairs
from tests.parity.families.harness import check_reference
from tests.parity.families.seq2seq.test_t5 import untied
from tests.parity.families.vision import test_owlvit
from tests.parity.reference import build
from tests.specs.language.test_reference_counts import TIED_TILL_LOADED
from tests.thinned import one_in
from tests.zoo.configs.published_pipelines import DEFAULTS, Data, Expressed, Refused
from zoo.builder import assemble
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config

EXPRESSED = {task: each for task, each in DEFAULTS.items() if isinstance(each, Expressed)}
REFUSED = {task: each for task, each in DEFAULTS.items() if isinstance(each, Refused)}
GUIDE = Path(__file__).parents[3] / "docs" / "reference" / "clients.md"

UNREAD = {
    "vision-encoder-decoder": ("encoder.pooler.",),
    "dinov3_vit": ("embeddings.mask_token",),
    "wav2vec2": ("wav2vec2.masked_spec_embed",),
    "owlvit": ("owlvit.visual_projection.", "owlvit.logit_scale"),
}
"""The tensors of a class that no output depends on."""


def class_of(config: Data) -> Any:
    """The class that a config names."""
    return getattr(transformers, config["architectures"][0])


def narrowed(config: Data, sizes: Data) -> Data:
    """A config with other sizes, in its parts as well."""
    changed = {
        name: narrowed(config[name], value) if isinstance(value, dict) else value
        for name, value in sizes.items()
    }
    return {**config, **changed}


@pytest.mark.parametrize("task", EXPRESSED)
def test_its_config_is_read_and_has_the_parameters_of_its_class(task: str) -> None:
    default = EXPRESSED[task]
    print(
        f"{task}: {default.model}, its config {f'unsure in {default.unsure}' if default.unsure else 'as published'}"
    )
    spec = spec_of_config(Config(default.config, "config.json"), name="x")
    if not default.differs:
        found = differences(canonical(load(default.like)), canonical(spec))
        assert {path for path, *_ in found} <= {("head", "kind"), ("encoder", "weighted_layer_sum")}
    model_class = class_of(default.config)
    with torch.device("meta"):
        reference = model_class(model_class.config_class.from_dict(default.config))
    unread = UNREAD.get(default.config["model_type"], ())
    expected = [each for name, each in reference.named_parameters() if not name.startswith(unread or "-")]
    count = sum(each.numel() for each in expected)
    if default.config["model_type"] in TIED_TILL_LOADED and not getattr(spec.head, "tie_embeddings", True):
        count += reference.lm_head.weight.numel()
    assert sum(each.numel() for each in assemble(spec).parameters()) == count


@one_in(20)
@pytest.mark.parametrize("task", EXPRESSED)
def test_a_narrow_copy_goes_in_and_out_and_to_the_client(task: str, tmp_path: Path) -> None:
    default = EXPRESSED[task]
    data = narrowed(default.config, default.narrow)
    model_class = class_of(data)
    config = model_class.config_class.from_dict(data)
    if data["model_type"] == "clip":
        spec = pairs.check(model_class, config, tmp_path)
    elif data["model_type"] == "owlvit":
        spec = test_owlvit.check(model_class, config, tmp_path)
    else:
        reference, unread = build(model_class, config, 1), UNREAD.get(data["model_type"], ())
        if data.get("tie_word_embeddings") is False and data["model_type"] in TIED_TILL_LOADED:
            untied(reference, 1)
        spec = check_reference(reference, tmp_path, sides=("right",), without=unread)
    options = ExportOptions(weights=str(tmp_path / "reference"), layout="transformers-js", verify=False)
    export(spec, tmp_path / "client", options)
    written = json.loads((tmp_path / "client" / "config.json").read_text("utf-8"))
    assert written["architectures"] == data["architectures"]


@pytest.mark.parametrize("task", REFUSED)
def test_others_are_refused_by_what_they_need(task: str, tmp_path: Path) -> None:
    default = REFUSED[task]
    (tmp_path / "config.json").write_text(json.dumps(default.config), "utf-8")
    result = invoke("import", str(tmp_path))
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit)
    assert default.missing in result.stderr
    assert "specs cannot express" in result.stderr


def test_the_guide_lists_them() -> None:
    page = GUIDE.read_text("utf-8")
    rows = dict(re.findall(r"^\| `([\w-]+)` \| `[\w.-]+/[\w.-]+` \| (.*) \|$", page, re.MULTILINE))
    assert list(rows) == list(DEFAULTS)
    assert f"each of its {len(DEFAULTS)} pipelines" in page
    assert f"the checkpoints of {len(EXPRESSED)} of them" in page
    for task, default in DEFAULTS.items():
        assert f"| `{task}` | `{default.model}` |" in page
        if isinstance(default, Expressed):
            assert rows[task].startswith(f"`{default.config['model_type']}`: `{default.like}`")
        else:
            assert rows[task].startswith("refused: ")
