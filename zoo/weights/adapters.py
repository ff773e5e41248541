"""Adapters of PEFT, which change the weights of a base model: as weights they are refused, with the way to merge them."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from specs.base.errors import shorten
from zoo.files.json_values import read_object
from zoo.weights.source import WeightError

SETTINGS = "adapter_config.json"
_CONFIG = "config.json"
PREFIX = "base_model.model."
_PROMPTS = (
    "PROMPT_TUNING", "MULTITASK_PROMPT_TUNING", "P_TUNING", "PREFIX_TUNING", "ADAPTION_PROMPT", "CPT", "CARTRIDGE",
)  # fmt: skip
"""The kinds that add tokens to the input, not matrices to the weights."""

_CLASSES = {
    "CAUSAL_LM": "AutoModelForCausalLM",
    "FEATURE_EXTRACTION": "AutoModel",
    "QUESTION_ANS": "AutoModelForQuestionAnswering",
    "SEQ_2_SEQ_LM": "AutoModelForSeq2SeqLM",
    "SEQ_CLS": "AutoModelForSequenceClassification",
    "TOKEN_CLS": "AutoModelForTokenClassification",
}
"""The classes of transformers by PEFT's names of tasks."""


def refuse_adapter(directory: Path) -> None:
    """Raise :class:`WeightError` where a directory has an adapter, alone or beside the weights of its base model."""
    settings = directory / SETTINGS
    if os.path.lexists(settings):
        adapter_config = read_object(settings, WeightError, directory)
        raise WeightError("\n".join(_message(directory, adapter_config)))


def refuse_adapter_file(path: Path, names: Iterator[str]) -> None:
    """Raise :class:`WeightError` if a file holds an adapter's tensors."""
    if any(name.startswith(PREFIX) for name in names):
        refuse_adapter(path if path.is_dir() else path.parent)
        raise WeightError(
            f"{path} has the weights of a PEFT adapter (names begin with {PREFIX}), which only its {SETTINGS} explains\n"
            f"  Copy {SETTINGS} next to it to see how to merge it, or pass the merged model."
        )


def _message(directory: Path, adapter_config: dict[str, Any]) -> Iterator[str]:
    kind, base = adapter_config.get("peft_type"), adapter_config.get("base_model_name_or_path")
    embedded = (directory / _CONFIG).exists()
    whose = (
        "for the weights beside it"
        if embedded
        else f"for {shorten(base) if base else 'an unnamed base model'}"
    )
    if not isinstance(kind, str):
        yield f"{directory} has an adapter ({SETTINGS}) of a library other than PEFT\n  value: no peft_type"
        yield "  Merge it into its base model with that library, and pass the merged model."
        return
    yield f"{directory} has a PEFT adapter ({SETTINGS}) {whose}, and adapters are not read\n  value: {shorten(kind)}"
    if kind in _PROMPTS:
        yield "  It adds tokens to the input, which cannot be merged into weights: pass the base model."
        return
    adapter, merged = directory, f"{directory.name or 'adapter'}-merged"
    if embedded:
        adapter = directory.with_name(f"{directory.resolve().name}-adapter")
        yield "  Merge it, and pass the merged model; or remove the adapter's files to use the weights without it:"
        yield f"    mkdir {shlex.quote(str(adapter))} && mv {shlex.quote(str(directory))}/adapter_* {shlex.quote(str(adapter))}"
    else:
        yield "  Merge it, and pass the merged model:"
    source = str(directory) if embedded else str(base or "BASE MODEL")
    if kind == "LORA":
        yield f"    zoo adapt {shlex.quote(source)} --merge {shlex.quote(str(adapter))} -o {shlex.quote(merged)}"
        return
    program = _program(_class_of(directory, adapter_config), source, str(adapter), merged)
    tokenizer = next(
        (
            candidate
            for candidate in (str(directory), source)
            if (Path(candidate) / "tokenizer_config.json").is_file()
        ),
        None,
    )
    if tokenizer is None and adapter_config.get("task_type") in _CLASSES and not Path(source).exists():
        tokenizer = source
    if tokenizer is not None:
        program += f"; from transformers import AutoTokenizer as T; T.from_pretrained({_text(tokenizer)}).save_pretrained({_text(merged)})"
    yield f"    python -c {shlex.quote(program)}"


def _class_of(directory: Path, adapter_config: dict[str, Any]) -> str:
    """Return the class of transformers that the adapter's base model has."""
    if adapter_config.get("task_type") in _CLASSES:
        return _CLASSES[adapter_config["task_type"]]
    mapping = adapter_config.get("auto_mapping")
    named = [mapping.get("base_model_class")] if isinstance(mapping, dict) else []
    config = directory / _CONFIG
    if config.is_file() and isinstance(
        names := read_object(config, WeightError, directory).get("architectures"), list
    ):
        named += names[:1]
    return next((name for name in named if isinstance(name, str) and name.isidentifier()), "AutoModel")


def _program(base_class: str, base: str, adapter: str, merged: str) -> str:
    """Return the program that merges an adapter into its base model."""
    return (
        f"from peft import PeftModel as P; from transformers import {base_class} as B; "
        f"P.from_pretrained(B.from_pretrained({_text(base)}), {_text(adapter)}).merge_and_unload().save_pretrained({_text(merged)})"
    )


def _text(value: str) -> str:
    """Return a text as a literal of Python in double quotes, which a shell leaves alone in single ones."""
    return json.dumps(value, ensure_ascii=False)
