"""Zoo files: what they ask for, and how they are refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from exporters.making.artefacts import read_zoo
from exporters.steps.options import ExportOptions
from specs.base.errors import SpecError, UserError
from specs.files.export_options import ArtefactOptions
from specs.files.schema import zoo_file_schema
from tests.exporters.making.zoos import write_zoo
from tests.json_schemas import validator_of


def test_options_are_those_of_an_export_with_the_same_defaults() -> None:
    elsewhere = {
        "adapters",
        "weights",
        "seed",
        "provider",
    }  # of the model, or of the machine, not of the artefact
    assert {*ExportOptions.model_fields} - elsewhere == {*ArtefactOptions.model_fields}


def test_a_value_that_no_export_takes_is_refused_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"zoo.yaml:2:.*models.a.matrix.precision\[1\]: must be 'fp32', .*\n  value: 'int9'\n  Did you mean 'int8'"):  # fmt: skip
        write_zoo(tmp_path, "models:\n  a: {matrix: {precision: [fp32, int9]}}\n")


def test_a_matrix_gives_every_combination_that_is_not_excluded(tmp_path: Path) -> None:
    zoo = write_zoo(
        tmp_path,
        "defaults:\n"
        "  matrix: {target: [portable, cpu], precision: [fp32, int8]}\n"
        "  exclude: [{target: portable, precision: int8}]\n"
        "models:\n"
        "  gpt2: {}\n"
        "  bert-tiny:\n"
        "    matrix: {}\n"
        "    options: {layout: optimum}\n"
        "    artefacts: [{target: cpu, precision: int4, asymmetric: true}, {name: own, precision: fp16}]\n",
    )
    assert [artefact.name for artefact in zoo.artefacts] == [
        "gpt2/portable-fp32",
        "gpt2/cpu-fp32",
        "gpt2/cpu-int8",
        "bert-tiny/cpu-int4-optimum-asymmetric",
        "bert-tiny/own",
    ]
    assert zoo.artefacts[3].directory == tmp_path / "build" / "bert-tiny" / "cpu-int4-optimum-asymmetric"


def test_additional_outputs_name_an_artefact(tmp_path: Path) -> None:
    zoo = write_zoo(
        tmp_path, "models: {bert-tiny: {options: {outputs: ['hidden:1,-1', last_hidden_state]}}}\n"
    )
    assert [artefact.name for artefact in zoo.artefacts] == [
        "bert-tiny/portable-fp32-hidden-1--1-last_hidden_state"
    ]


def test_models_groups_and_artefacts_are_chosen_by_name(tmp_path: Path) -> None:
    zoo = write_zoo(
        tmp_path,
        "models:\n  gpt2: {matrix: {precision: [fp32, fp16]}}\n  bert-tiny: {}\n  vit-base-16: {}\n"
        "groups: {small: [bert-tiny, vit-base-16]}\n",
    )
    assert [each.name for each in zoo.chosen(["small"])] == [
        "bert-tiny/portable-fp32",
        "vit-base-16/portable-fp32",
    ]
    assert [each.name for each in zoo.chosen(["gpt2/portable-fp16", "bert-tiny"])] == [
        "gpt2/portable-fp16",
        "bert-tiny/portable-fp32",
    ]
    with pytest.raises(UserError, match=r"no model, group or artefact.*\n.*'bert-tini'\n.*'bert-tiny'"):
        zoo.chosen(["bert-tini"])


def test_a_zoo_file_is_laid_over_the_one_that_it_extends(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("output: out\nmodels: {gpt2: {}, bert-tiny: {}}\n")
    zoo = write_zoo(tmp_path, "extends: base.yaml\nmodels: {gpt2: {options: {precision: fp16}}}\n")
    assert [str(each.directory.relative_to(tmp_path)) for each in zoo.artefacts] == [
        "out/gpt2/portable-fp16",
        "out/bert-tiny/portable-fp32",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("modles: {gpt2: {}}", "zoo.yaml:1:1: modles: is not a known key\n  Did you mean 'models'"),
        ("models: {}", "models: must have at least 1 item"),
        ("models: {gpt2: {wieghts: x}}", "models.gpt2.wieghts: is not a known key\n  Did you mean .*weights"),
        ("models: {gpt2: {options: {precison: int8}}}", "zoo.yaml:1:.*precison: is not a known key"),
        ("models: {gpt2: {matrix: {logits: [all, some]}}}", r"zoo.yaml:1:40: models.gpt2.matrix.logits\[1\]"),
        ("models: {gpt2: {exclude: [{verify: maybe}]}}", r"models.gpt2.exclude\[0\].verify"),
        (
            "models: {gpt2: {matrix: {target: cpu}}}",
            r"models.gpt2.matrix.target: must be a list\n  value: .cpu.\n  Write \[cpu\].",
        ),
        (
            "models: {gpt2: {resources: {memory: lots}}}",
            "must be a size.*\n.*'lots'\n  Write a size such as 16GB",
        ),
        ("models: {gpt2: {}}\ngroups: {all: [gpt3]}", r"groups.all\[0\]: must be the name of a model"),
        ("models: {gpt2: {}}\ngroups: {gpt2: [gpt2]}", "must not have the name of a model"),
        ("models: {../x: {}}", "must match"),
        ("output: /tmp\nmodels: {gpt2: {}}", "must be a path below"),
        ("extends: gpt2\nmodels: {gpt2: {}}", "extends: must be the path of a zoo file"),
        ("extends: zoo.yaml\nmodels: {gpt2: {}}", "must not lead back to itself"),
        (
            "models: {gpt2: {artefacts: [{name: x, precision: fp32}, {name: x, precision: fp16}]}}",
            "models.gpt2.artefacts: must have different names",
        ),
    ],
)
def test_a_wrong_zoo_file_is_refused_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "zoo.yaml").write_text(text + "\n")
    with pytest.raises(SpecError, match=message):
        read_zoo(tmp_path / "zoo.yaml")


def test_the_example_of_the_guide_is_read_and_fits_the_schema(tmp_path: Path) -> None:
    (example,) = re.findall(
        r"```yaml\n(defaults.*?)```", Path("docs/guides/many-models.md").read_text("utf-8"), re.S
    )
    zoo = write_zoo(tmp_path, example)
    assert [each.name for each in zoo.chosen(["writer"])] == [
        "writer/cpu-int4-logits-last-budget-4.8bits",
        "writer/phone",
    ]
    schema = zoo_file_schema()
    validator = validator_of(schema)
    validator.validate(yaml.safe_load(example))
    wrong = yaml.safe_load(example)
    wrong["models"]["writer"]["set"] = "decoder.layers=4"
    wrong["models"]["search"]["options"] = {"precison": "int8"}
    assert len(list(validator.iter_errors(wrong))) == 2
