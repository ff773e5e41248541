"""The parts of a checkpoint that accompany its weights: labels, special tokens and tokenizer."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specs.base.errors import UserError
from specs.model.model import Model
from zoo.families.common.config import CONFIG
from zoo.files.json_values import parse_object
from zoo.files.reading import copy_regular, read_regular, unreadable
from zoo.generation.settings import GENERATION, generation_fields
from zoo.weights.gguf_file import is_gguf
from zoo.weights.hub import located
from zoo.weights.modules import (
    MASK,
    PROMPTS,
    SETTINGS,
    STATIC_PLACE,
    body_directory,
    modules_in,
    static_queries,
)
from zoo.weights.names import GLINER, SINGLE

_LABELS = ("id2label", "label2id")
_TOKENS = (
    *(f"{name}_token_id" for name in ("bos", "eos", "pad", "sep", "cls", "mask", "unk", "decoder_start")),
    *(f"{name}_token_id" for name in ("vision_start", "vision_end", "video")),
    "forced_bos_token_id",
    "forced_eos_token_id",
)
FILES = (
    "added_tokens.json",
    "chat_template.jinja",
    GENERATION,
    "merges.txt",
    "preprocessor_config.json",
    "processor_config.json",
    "sentencepiece.bpe.model",
    "special_tokens_map.json",
    "spiece.model",
    "spm.model",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
)
"""The tokenizer and processor files of a checkpoint, which are copied to outputs made from it."""


def origin_of(weights: str) -> Path:
    """Return the path of the weights that a user named; hub repositories are fetched."""
    return located(weights, weights=False)


def tokenizer_origin(weights: str) -> Path:
    """Return the location of the tokenizer for the weights that a user named: their directory, or the GGUF file."""
    origin = origin_of(weights)
    if not origin.exists():
        return origin
    return origin if origin.is_dir() or is_gguf(origin) else origin.parent


def described(spec: Model, origin: Path, model_type: str | None = None) -> dict[str, Any]:
    """Return the config of a spec, with the labels and the special tokens of the checkpoint at ``origin``, if any.

    The family is ``model_type``, the checkpoint's, or the first whose config can express all of the spec. Raises
    :class:`zoo.configs.exporting.NoFamilyError`.
    """
    from zoo.configs.exporting import write_config

    origin_config = stated_in(body_directory(origin) / CONFIG)
    config = write_config(spec, model_type, preferred=origin_config.get("model_type"))
    carried = _carried_fields(origin_config, config)
    if len(carried.get("id2label", ())) != (spec.head.label_count or 0):
        carried = {name: value for name, value in carried.items() if name not in _LABELS}
    return {**config, **carried}


def config_files(spec: Model, config: Mapping[str, Any], origin: Path) -> dict[str, Any]:
    """Return the files that describe a spec, by path: a ``config`` of :func:`described` with the :func:`module_files`, or GLiNER's
    config with the ``config`` inside."""
    if spec.head.span_width is None:
        return {CONFIG: dict(config), **module_files(spec, config, origin)}
    from zoo.configs.spans import write_spans

    encoder = {name: value for name, value in config.items() if name != "dtype"}
    return {GLINER: write_spans(spec, encoder, stated_in(origin / GLINER))}


def module_files(spec: Model, config: Mapping[str, Any], origin: Path) -> dict[str, Any]:
    """Return the files that sentence-transformers reads in addition to a config of :func:`described`, by path; none where
    the config describes the head."""
    from zoo.configs.exporting import sentence_files

    settings, static = stated_in(body_directory(origin) / SETTINGS), static_queries(origin) is not None
    files: dict[str, Any] = sentence_files(spec, dict(config), settings, static=static)
    masks = (
        [module.directory / CONFIG for module in modules_in(origin) if module.kind == MASK] if files else []
    )
    for path in (path for path in files if path.endswith(f"_{MASK}/{CONFIG}")):
        files[path] |= stated_in(masks[0]) if masks else {}
    prompts = stated_in(origin / PROMPTS)
    return {**files, PROMPTS: prompts} if files and prompts else files


def check_files(origin: Path) -> None:
    """Raise :class:`specs.base.errors.UserError` for a damaged JSON file among the tokenizer's and processor's of a checkpoint.

    GGUF files have none of these.
    """
    if is_gguf(origin):
        return
    for path in (body_directory(origin) / name for name in FILES if name.endswith(".json")):
        if not os.path.lexists(path):
            continue
        parse_object(
            _text_in(path), str(path), UserError, "\n  Copy the file again from where it came, or remove it."
        )


def carry_files(origin: Path, directory: Path) -> None:
    """Copy the tokenizer's files and the generation settings of a checkpoint where present; GGUF files contain them.

    Settings in the config of a checkpoint without a file of them, as in early ones, become one.  Raises
    :class:`specs.base.errors.UserError` for a file that is not a regular one of the checkpoint's directory.
    """
    if is_gguf(origin):
        from zoo.checkpoints.gguf_tokenizer import gguf_tokenizer

        for name, text in gguf_tokenizer(origin).items():
            (directory / name).write_text(text, encoding="utf-8")
        return
    for name in FILES:
        carry(body_directory(origin), directory, name)
    settings = {} if os.path.lexists(origin / GENERATION) else generation_fields(stated_in(origin / CONFIG))
    if settings:
        (directory / GENERATION).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def carry_static_queries(origin: Path, directory: Path) -> None:
    """Copy the module with the static weights of queries where present, to its usual directory.

    Raises :class:`specs.base.errors.UserError` if its weights are in another format, and as :func:`carry`.
    """
    if (module := static_queries(origin)) is not None:
        if not os.path.lexists(module / SINGLE):
            raise UserError(
                f"{module} must have {SINGLE}, the weights of the terms of queries\n"
                "  Load the model with sentence-transformers and save it again."
            )
        (directory / STATIC_PLACE).mkdir()
        for name in (CONFIG, SINGLE, *FILES):
            carry(module, directory / STATIC_PLACE, name)


def carry(origin: Path, directory: Path, name: str) -> None:
    """Copy a file of a checkpoint where present.

    Raises :class:`specs.base.errors.UserError` for one that is not a regular one of its directory.
    """
    if os.path.lexists(origin / name):
        try:
            copy_regular(origin / name, directory / name, origin)
        except OSError as error:
            raise UserError(unreadable(origin / name, error)) from None


def special_tokens(origin: Path) -> dict[str, Any]:
    """Return the ids of special tokens from a checkpoint's config and generation settings, or from a GGUF file."""
    if is_gguf(origin):
        from zoo.checkpoints.gguf_tokenizer import gguf_tokenizer

        return dict(json.loads(gguf_tokenizer(origin).get(GENERATION, "{}")))
    origin = body_directory(origin)
    return {**stated_in(origin / CONFIG), **stated_in(origin / GENERATION)}


def token_fields(origin: Path) -> dict[str, Any]:
    """Return the fields of a config that name special tokens, as :func:`special_tokens` has them."""
    tokens = special_tokens(origin)
    return {name: tokens[name] for name in _TOKENS if tokens.get(name) is not None}


def stated_in(path: Path) -> dict[str, Any]:
    """Return the fields of a JSON file in a directory; none where it is absent or not an object.

    Raises :class:`specs.base.errors.UserError` for a file that is not a regular one of its directory.
    """
    if not os.path.lexists(path):
        return {}
    text = _text_in(path)
    try:
        return parse_object(text, str(path), UserError)
    except UserError:
        return {}


def _text_in(path: Path) -> bytes:
    """Return the content of a regular file of its directory."""
    try:
        return read_regular(path, path.parent)
    except OSError as error:
        raise UserError(unreadable(path, error)) from None


def _carried_fields(origin_config: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the labels of a checkpoint, and the special tokens that the config lacks."""
    fields = [*_LABELS, *(name for name in _TOKENS if config.get(name) is None)]
    return {name: origin_config[name] for name in fields if name in origin_config}
