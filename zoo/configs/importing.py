"""From a checkpoint's config to a spec."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from specs.base.errors import SpecError, option_name
from specs.base.suggest import misspelt
from specs.forms.resolved import resolved
from specs.language.document import Document
from specs.language.load import load
from specs.language.named_blocks import with_named_blocks
from specs.language.validation import validate
from specs.model.model import Model
from zoo.configs.causal_encoder import both_ways, causal_encoder
from zoo.configs.config_fields import broken_rules, divisor_of_zero
from zoo.configs.reranking import reranker_spec, scored_tokens
from zoo.configs.sentence import sentence_modules, sentence_spec, spec_of_modules, stanford_head
from zoo.configs.spans import (
    encoder_config,
    gliner_config,
    named_encoder,
    read_spans,
    spans_spec,
    with_spans,
)
from zoo.configs.spec_beside import SPEC, spec_beside
from zoo.families.common.config import CONFIG, Config
from zoo.families.common.config_errors import ConfigError
from zoo.families.common.family import Family
from zoo.families.common.layer_runs import merge
from zoo.families.common.template import Data
from zoo.families.registry import family_of_config, read_as
from zoo.weights.adapters import refuse_adapter
from zoo.weights.gguf_file import is_gguf
from zoo.weights.hub import repository_name, snapshot_of
from zoo.weights.modules import body_directory

Tell = Callable[[Sequence[str]], None]
"""Receives the names of the fields that an import skips because the reference does not have them."""

Read = Callable[[Config, Family], Data]
"""Returns the spec of a config of a family, without a name."""


def import_spec(
    path: Path,
    *,
    name: str | None = None,
    ignored: Collection[str] = (),
    strict: bool = False,
    tell: Tell = lambda names: None,
    family: str | None = None,
) -> Model:
    """Return the spec of a config.json, of a directory that has one, or of a GGUF file.

    A sentence-transformers directory gives the body with the head that its modules describe. ``name`` is the name of
    the spec (default: the directory's); ``ignored`` are unsupported fields to accept. Fields that the reference does
    not have are skipped and passed to ``tell``, or refused where ``strict``. A config of an unknown type is read as one of
    the ``family`` if given.  Raises :class:`ConfigError`, which names the field, for unsupported or contradictory fields.
    """
    if path.is_dir():
        path = snapshot_of(path)
        refuse_adapter(path)
    if (spans := gliner_config(path)) is not None:
        spans.ignored, spans.strict = ignored, strict
        return _of_spans(spans, name or _name(path / CONFIG if path.is_dir() else path), tell, family)
    file = body_directory(path) / CONFIG if path.is_dir() else path
    if not os.path.lexists(file):
        remedy = "Pass a directory with a config.json, the config.json itself, or a GGUF file."
        raise ConfigError(f"{file} is missing\n  {remedy}")
    in_file: AbstractContextManager[None] = nullcontext()
    if is_gguf(file):
        from zoo.configs.gguf import config_of_gguf, fields_as_keys

        config = Config(config_of_gguf(file, ignored), str(file))
        in_file = fields_as_keys(config)
    else:
        config = Config.load(
            file, lambda: tensors_beside(file.parent), file.parent if path.is_dir() else None
        )
    if config.data.get("model_type") == "zoo":
        return _of_code(config, path, name)
    if family is not None:
        config = read_as(config, family)
    read = (_of_modules(path) if path.is_dir() else None) or _of_colbert(config)
    with in_file:
        return spec_of_config(
            config,
            name=name or _name(path / CONFIG if path.is_dir() else file),
            ignored=ignored,
            strict=strict,
            tell=tell,
            read=read or of_class,
        )


def _of_code(config: Config, path: Path, name: str | None) -> Model:
    """Return the spec of a checkpoint with the model's own code, whose config does not describe the architecture."""
    if (spec := spec_beside(path)) is None:
        config.refuse(
            "model_type",
            f"names a model with its own code, whose {SPEC} is missing",
            f"Copy {SPEC} from the directory that zoo convert wrote into {path if path.is_dir() else path.parent}.",
        )
    return spec if name is None else spec.model_copy(update={"name": name})


def _of_spans(config: Config, name: str, tell: Tell, family: str | None) -> Model:
    """Return the spec of GLiNER's config: the encoder inside, or the preset that it names, with the head."""
    head = read_spans(config)
    if passed_over := config.finish():
        tell(passed_over)
    if (encoder := encoder_config(config)) is not None:
        encoder = encoder if family is None else read_as(encoder, family)
        encoder.ignored, read = config.ignored, functools.partial(spans_spec, head)
        return spec_of_config(encoder, name=name, strict=config.strict, tell=tell, read=read)
    preset = load(named_encoder(config))
    data = {**resolved(preset), "vocab_size": config.int("vocab_size", default=preset.vocab_size)}
    body = {key: value for key, value in data.items() if key not in _OF_PRESETS}
    try:
        return validate(_document({"name": name, **with_spans(head, body)}))
    except SpecError as error:
        raise ConfigError(f"{config.where} describes a model that breaks a rule\n{error}") from None


_OF_PRESETS = ("name", "summary", "source", "year", "expect", "head")
"""The keys that say what a preset is, and its head."""


def _of_modules(directory: Path) -> Read | None:
    """Return what reads a directory with sentence-transformers modules; None where the config alone describes the model."""
    if tokens := scored_tokens(directory):
        return functools.partial(reranker_spec, tokens)
    if modules := sentence_modules(directory):
        return functools.partial(spec_of_modules, directory, modules)
    return None


def _of_colbert(config: Config) -> Read | None:
    """Return what reads the config of a checkpoint of Stanford's ColBERT, which names no class of transformers."""
    if config.any("architectures") != ["HF_ColBERT"]:
        return None
    return functools.partial(sentence_spec, functools.partial(stanford_head, config))


def of_class(config: Config, family: Family) -> Data:
    """Return the spec of the class that a config names, without a name."""
    return both_ways(family.spec(config, _class_name(config, family)))


def of_causal_class(config: Config, family: Family) -> Data:
    """Return that spec, with a decoder as a causal encoder."""
    return causal_encoder(of_class(config, family))


def spec_of_config(
    config: Config,
    *,
    name: str,
    ignored: Collection[str] = (),
    strict: bool = False,
    tell: Tell = lambda names: None,
    read: Read = of_class,
) -> Model:
    """Return the spec of a config, which ``read`` reads.  Raises as :func:`import_spec`."""
    config.ignored, config.strict = ignored, strict
    family = family_of_config(config)
    _check_quantization(config)
    try:
        data = read(config, family)
    except ArithmeticError:
        raise divisor_of_zero(config, lambda other: read(other, family)) from None
    if passed_over := config.finish():
        tell(passed_over)
    try:
        return validate(_document({"name": name, **data}))
    except SpecError as error:
        raise broken_rules(error, config, lambda other: _document(read(other, family)).data) from None


def _check_quantization(config: Config) -> None:
    """Raise :class:`ConfigError` for an unsupported quantization method; the rest is read with the weights."""
    quantization = config.any("quantization_config")
    if quantization is None:
        return
    from zoo.packed.formats import method_of
    from zoo.weights.source import WeightError

    try:
        method_of(quantization, config.where)
    except WeightError as error:
        raise ConfigError(str(error)) from None


def _document(data: Data) -> Document:
    """Return the document of plain data."""
    return with_named_blocks(Document(_tidy(_positioned(data)), {}, {}))


_IN_ATTENTION = ("alibi", "relative_bias", "rope")
"""Kinds of positions that act where a layer attends."""


def _positioned(data: Data) -> Data:
    """Return a spec without the position that its config states, where it acts in attention and no layer attends."""
    stack = data.get("decoder") or data.get("encoder") or {}
    position = data.get("position") or {}
    if position.get("kind") not in _IN_ATTENTION or len(_STACKS & data.keys()) != 1 or _attends(stack):
        return data
    return {**data, "position": {"kind": "none"}}


_STACKS = {"decoder", "encoder", "image", "text"}


def _attends(stack: Data) -> bool:
    """Return whether a block that a layer uses has an attention."""
    layers = stack["layers"]
    runs: list[Data] = [{"repeat": layers}] if isinstance(layers, int) else layers
    used = {run.get("use") for entry in runs for run in entry.get("pattern", [entry])}
    block = stack["block"]
    blocks = [block if name is None else merge(block, stack["blocks"][name]) for name in used]
    return any(map(_has_attention, blocks))


def _has_attention(part: Data) -> bool:
    inner = (value for value in part.values() if isinstance(value, dict))
    return isinstance(part.get("attention"), dict) or any(map(_has_attention, inner))


def tensors_beside(directory: Path) -> Collection[str]:
    """Return the names of the tensors in a config's directory, if any."""
    from zoo.packed.formats import unpacked_files
    from zoo.weights.files import TensorFiles
    from zoo.weights.source import WeightError

    try:
        return unpacked_files(TensorFiles.open(directory)).tensors
    except WeightError:  # reported when the weights are read
        return ()


def _class_name(config: Config, family: Family) -> str:
    """Return the class that a config names, or else the family's default."""
    named = config.any("architectures")
    if named is None or named == []:
        return next(iter(family.classes))
    if not isinstance(named, list) or not all(isinstance(item, str) for item in named):
        config.refuse("architectures", "must be a list of class names")
    known = next((item for item in named if item in family.classes), None)
    if known is None:
        if because := family.refused.get(named[0]):
            others = ", ".join(family.classes)
            remedy = f"Pass {option_name('family')} with another class to read it as that one: {others}."
            config.refuse("architectures", f"must not name {named[0]}, {because}", remedy)
        near = misspelt(named[0], family.classes)
        remedy = f"Did you mean {near!r}?" if near else f"Choose from: {', '.join(family.classes)}."
        config.refuse("architectures", f"must name a supported class of {family.model_type}", remedy)
    return known


def _name(file: Path) -> str:
    """Return a name for a spec, from the path of its config."""
    stem = repository_name(file.parent) or file.resolve().parent.name if file.name == CONFIG else file.stem
    return re.sub(r"[^A-Za-z0-9._+=,@-]+", "-", stem).strip("-._+=,@")[:200] or "imported"


_STATED_NULLS = ("attention", "mixer", "feed_forward", "norm", "activation")
"""Keys for which None says that there is none: the branches of a block, the norm of Mamba-2, the dense layer of a head."""


def _tidy(data: Data, base: Data | None = None) -> Data:
    """Return plain data without None values, except those that a spec states and those that remove a value of the ``base`` that the
    data is merged with, as each named block is with the stack's block."""
    kept: Data = {}
    for key, value in data.items():
        below = None if base is None else base.get(key)
        if key == "blocks":
            kept[key] = {name: _tidy(variant, data["block"]) for name, variant in value.items()}
        elif isinstance(value, dict):
            kept[key] = _tidy(value, below if isinstance(below, dict) else None)
        elif value is not None or below is not None or key in _STATED_NULLS:
            kept[key] = value
    return kept
