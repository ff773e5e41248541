"""Configs as a file states them: what the reference computes from one, and what we compute with the same weights.

``tiny_configs.jsonl`` has a config of each family, as the tests of the families save it.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers

from specs.model.model import Model
from tests.parity.families import pairs
from tests.parity.families import vision_language_tests as vision_language
from tests.parity.families.harness import compare
from tests.parity.families.refusals import changed
from tests.parity.reference import build, difference, load
from zoo.configs.importing import import_spec, spec_of_config
from zoo.families.common.config import Config
from zoo.families.common.typed_fields import TypedFields

FILE = Path(__file__).with_name("tiny_configs.jsonl")
_LINES = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
CONFIGS: Mapping[str, dict[str, Any]] = {line["config"]["model_type"]: line["config"] for line in _LINES}
"""model_type -> a config."""
_MODULES = {line["config"]["model_type"]: line["module"] for line in _LINES if "module" in line}

_ROWS_APART, _MARKED = ("idefics2", "smolvlm"), ("gemma3", "paligemma")


def stated(model_type: str, path: str, value: Any) -> dict[str, Any]:
    """A family's config with a value at a path such as ``text_config.tie_word_embeddings``."""
    return changed(CONFIGS[model_type], path, value)


def spec_of(data: Mapping[str, Any]) -> Model:
    """The spec of a config."""
    return spec_of_config(Config(data, "config.json"), name="tiny")


def booleans_of(data: Mapping[str, Any]) -> Iterator[str]:
    """The paths of the boolean fields that are read in a config."""
    found: dict[str, None] = {}

    original = TypedFields._typed

    def typed(
        self: TypedFields, names: tuple[str, ...], types: tuple[type, ...], what: str, default: Any
    ) -> Any:
        if types == (bool,):
            name = next((name for name in names if name in self.data), names[0])
            found[f"{self.path}{name}"] = None
        return original(self, names, types, what, default)

    TypedFields._typed = typed  # type: ignore[method-assign]
    try:
        spec_of(data)
    finally:
        TypedFields._typed = original  # type: ignore[method-assign]
    yield from found


def reference_of(data: Mapping[str, Any], directory: Path) -> Any:
    """The reference of a config file, with drawn weights; saved in ``directory`` beside the config as it was stated."""
    (directory / "config.json").write_text(json.dumps(data), encoding="utf-8")
    model_type, name = data["model_type"], data["architectures"][0]
    module = importlib.import_module(_MODULES[model_type]) if model_type in _MODULES else transformers
    model_class = getattr(module, name)
    config = model_class.config_class.from_pretrained(directory)
    reference = build(model_class, config, 1)
    if isinstance(getattr(reference, "logit_scale", None), torch.Tensor):
        with torch.no_grad():
            reference.logit_scale.fill_(1.3)
    reference.save_pretrained(directory)
    (directory / "config.json").write_text(json.dumps(data), encoding="utf-8")
    return reference


def difference_from(reference: Any, directory: Path) -> float:
    """How far our model of a directory is from its reference, at unit scale."""
    spec = import_spec(directory)
    ours = load(spec, directory)
    if spec.architecture == "dual-encoder":
        given = pairs.drawn_inputs(spec, 1)
        return pairs.largest(pairs.outputs_of(ours, given), pairs.outputs_of(reference, given))
    if spec.architecture == "vision-language":
        given = vision_language.drawn_inputs(spec, 1)
        theirs = _inputs(spec, reference.config.model_type)(given)
        return difference(vision_language.scores(ours, given), vision_language.scores(reference, theirs))
    return compare(reference, spec, ours)


def _inputs(spec: Model, model_type: str) -> vision_language.Inputs:
    if spec.packs_images:
        return partial(vision_language.typed, spec)
    if model_type in _ROWS_APART:
        return partial(vision_language.by_row_inputs, spec)
    return partial(vision_language.marked_inputs, spec) if model_type in _MARKED else dict
