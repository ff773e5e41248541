"""One table of options: what the flags, the zoo file, the record and the tables of the exporters take from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from typer.main import get_command

import zoo
from cli.app import app
from exporters.graph.precisions import PRECISIONS
from exporters.graph.quantization.cache_scheme import CACHE_FORMATS
from exporters.graph.quantization.scheme import BLOCK_SIZES
from exporters.layouts import LAYOUTS
from exporters.steps.options import ExportOptions
from exporters.target.targets import TARGETS
from specs.base.descriptions import field_descriptions
from specs.base.errors import UserError, option_name, with_flags
from specs.files.export_options import OptionTable, choices_of, default_of, mark_of
from tests.zoo.tiny import bert


def test_every_option_is_described() -> None:
    assert [*field_descriptions(OptionTable)] == [*OptionTable.model_fields]


def test_names_and_choices_are_those_of_the_tables() -> None:
    assert {*mark_of("target").names} == {*TARGETS}
    assert {*mark_of("layout").names} == {*LAYOUTS}
    assert choices_of("precision") == (*PRECISIONS,)
    assert choices_of("cache_precision") == (*CACHE_FORMATS,)
    assert choices_of("block_size") == BLOCK_SIZES


@pytest.mark.parametrize("command", ["build", "export"])
def test_a_command_has_one_flag_for_each_option_with_its_default(command: str) -> None:
    program: Any = get_command(app)
    flags = {parameter.name: parameter for parameter in program.commands[command].params}
    for name in OptionTable.model_fields:
        assert with_flags(option_name(name)) in flags[name].opts
        wanted = None if name == "weights" else default_of(name)  # those of the spec, if it is a checkpoint
        assert (flags[name].default or None) == (wanted or None)


def test_a_word_names_one_option_alone() -> None:
    words = [mark_of(name).word for name in OptionTable.model_fields]
    assert all(words.count(word) == 1 for word in words if word not in ("", "{}"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokens": 3}, "tokens is not a known key\n  Choose from: "),
        ({"presicion": "int8"}, "presicion is not a known key\n  Did you mean 'precision'?"),
        ({"seed": "3"}, "seed must be a whole number\n  value: '3'\n  Write it without quotes: 3."),
        ({"cache_length": 0}, "cache_length must be greater than 0\n  value: 0\n  Use 1 or more."),
        ({"verify": "no"}, "verify must be true or false\n  value: 'no'\n  Write false."),
        ({"via": "fy", "logits": "lasst"}, "logits 'lasst' is unknown\n  Did you mean 'last'?\nvia 'fy' is unknown"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_refused_with_its_name(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as refused:
        zoo.export(bert(), tmp_path / "x", **options)
    assert str(refused.value).startswith(message)
    assert not (tmp_path / "x").exists()


def test_paths_and_words_are_taken_in_either_form(tmp_path: Path) -> None:
    stated = ExportOptions.of(
        weights=tmp_path, precision="int4", calibrate=str(tmp_path / "x.txt"), engines="openvino"
    )
    assert (stated.weights, stated.calibrate, stated.engines) == (
        str(tmp_path),
        tmp_path / "x.txt",
        ("openvino",),
    )
    assert stated.changed(engines=["openvino", "openvino"]) == stated
    assert get_args(ExportOptions.model_fields["calibrate"].annotation)[0] is Path
