"""Whole config.json files as they stand in public repositories: each is imported with the right count, or refused for its reason.

``published_files.jsonl`` has a file per line: where it was read (repository and path), the config, and the number of parameters of
transformers' class or the reason of the refusal.  ``python -m tests.zoo.configs.test_published_files`` records counts and reasons anew.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from tests.thinned import one_in
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError
from zoo.reports.parameters import parameter_report

FILE = Path(__file__).with_name("published_files.jsonl")
FILES: list[dict[str, Any]] = [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]
IMPORTED = [file for file in FILES if "parameters" in file]
REFUSED = [file for file in FILES if "refused" in file]
UNREAD = {
    "vision-encoder-decoder": ("encoder.pooler.",),
    "esm": ("contact_head.",),
    "BertForPreTraining": ("bert.pooler.", "cls.seq_relationship."),
    **dict.fromkeys(("hubert", "wav2vec2", "wavlm"), ("masked_spec_embed",)),
}
"""Parts of the names of parameters on which no output depends, by the type or the class of a config."""


def _name(file: dict[str, Any]) -> str:
    return f"{file['repository']}/{file['path']}"


def _read(config: dict[str, Any]) -> Any:
    return spec_of_config(Config(config, "config.json"), name="published")


def _reference_count(config: dict[str, Any]) -> int:
    """The number of parameters of the class of transformers that a config names, or else of the body of its type."""
    plain = {name: value for name, value in config.items() if name != "quantization_config"}
    named = config.get("architectures", ["AutoModel"])[0]
    model_class = getattr(transformers, named)
    settings = transformers.AutoConfig.for_model(**plain)
    with torch.device("meta"):
        model = model_class.from_config(settings) if named == "AutoModel" else model_class(settings)
    unread = (*UNREAD.get(config["model_type"], ()), *UNREAD.get(named, ()))
    return sum(
        tensor.numel()
        for name, tensor in model.named_parameters()
        if not any(part in name for part in unread)
    )


def _reason(config: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        _read(config)
    return str(caught.value)


def test_there_are_enough_files_of_many_types() -> None:
    assert len(FILES) >= COUNT
    assert len({_name(file) for file in FILES}) == len(FILES)
    assert len({file["config"].get("model_type") for file in FILES}) >= TYPES


COUNT, TYPES = 198, 78


@one_in(8)
@pytest.mark.parametrize("file", IMPORTED, ids=_name)
def test_a_published_file_has_the_count_of_its_reference(file: dict[str, Any]) -> None:
    assert parameter_report(_read(file["config"])).total_parameters == file["parameters"]


@pytest.mark.parametrize("file", IMPORTED, ids=_name)
def test_a_published_file_is_imported(file: dict[str, Any]) -> None:
    _read(file["config"])


@pytest.mark.parametrize("file", REFUSED, ids=_name)
def test_a_published_file_is_refused_for_its_reason(file: dict[str, Any]) -> None:
    assert _reason(file["config"]) == file["refused"]


@pytest.mark.slow
@pytest.mark.parametrize("file", IMPORTED, ids=_name)
def test_the_recorded_count_is_that_of_transformers(file: dict[str, Any]) -> None:
    assert _reference_count(file["config"]) == file["parameters"]


def main() -> None:
    """Record the counts of transformers, and the reasons of refusals."""
    logging.disable(logging.WARNING)
    lines = []
    for file in FILES:
        known = {name: file[name] for name in ("repository", "path", "config")}
        try:
            _read(file["config"])
        except ConfigError as error:
            known["refused"] = str(error)
        else:
            known["parameters"] = _reference_count(file["config"])
        lines.append(json.dumps(known, ensure_ascii=False))
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
