"""Sentence encoders in the format of sentence-transformers: a config for the body, and the modules after it.

The head of such a model is ``pooled``: Pooling, at most two Dense layers, Normalize.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from specs.base.suggest import suggestion
from specs.kinds.activation import Activation
from specs.kinds.head import Pooled
from specs.kinds.pooling import PoolingName
from specs.model.model import Model
from zoo.configs.causal_encoder import causal_encoder
from zoo.families.common.config import CONFIG, REQUIRED, Config, ConfigError
from zoo.families.common.family import Family
from zoo.families.common.template import Data, UnfitError
from zoo.weights.modules import DENSE, MODULES, Module, modules_in

SETTINGS = "sentence_bert_config.json"
"""The settings file of the module Transformer, which limits the length of its inputs."""

PROMPTS = "config_sentence_transformers.json"
"""The file of sentence-transformers for usage: prompts, and the similarity function."""

OUTPUT = "sentence_embedding"
"""The name of a text's vector in sentence-transformers."""

_POOLINGS: dict[str, PoolingName] = {
    "cls": "first",
    "max": "max",
    "mean": "mean",
    "mean_sqrt_len_tokens": "mean_sqrt_length",
    "weightedmean": "weighted_mean",
    "lasttoken": "last",
}
_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""The fields of Pooling before version 6, one per mode."""

_ACTIVATIONS: dict[str, Activation] = {
    "torch.nn.modules.activation.Tanh": "tanh",
    "torch.nn.modules.linear.Identity": "identity",
    "torch.nn.modules.activation.ReLU": "relu",
    "torch.nn.modules.activation.GELU": "gelu",
    "torch.nn.modules.activation.SiLU": "silu",
    "torch.nn.modules.activation.Sigmoid": "sigmoid",
}


# --------------------------------------------------------------------------------------------------------- reading


def sentence_modules(directory: Path) -> list[Module]:
    """Return the modules after the body of a directory; none without a ``modules.json``, or where it lists only the body.

    Raises :class:`specs.base.errors.UserError` for unsupported modules.
    """
    modules = modules_in(directory)
    if not modules:
        return []
    body, *others = modules
    kinds = [module.kind for module in others]
    dense = kinds.count(DENSE)
    if body.kind != "Transformer" or (kinds and kinds not in _chains(dense)):
        raise ConfigError(
            f"{directory / MODULES}: the modules {' -> '.join(module.kind for module in modules)} are not supported\n"
            "  Use Transformer, Pooling, at most two Dense and Normalize, in this order, or Transformer and LogitScore, "
            f"or pass {directory / CONFIG} for the model without modules."
        )
    if body.directory != directory:
        raise ConfigError(
            f"{directory / MODULES}: the path of the Transformer must be empty (the directory itself)\n"
            f"  value: {body.directory.name!r}\n  Move the files of {body.directory} up."
        )
    if others:
        _check_body(directory / SETTINGS)
    return others


def _chains(dense: int) -> list[list[str]]:
    """Return the sequences of modules after the body that a pooled head can express."""
    start = ["Pooling", *[DENSE] * dense]
    return [start, [*start, "Normalize"]] if dense <= 2 else []


def _check_body(path: Path) -> None:
    if os.path.lexists(path):
        settings = Config.load(path, within=path.parent)
        settings.must("transformer_task", "feature-extraction", "later modules read the last hidden state")
        settings.must("module_output_name", "token_embeddings", "later modules read the last hidden state")


def sentence_spec(head: Callable[[int], Data], config: Config, family: Family) -> Data:
    """Return the spec of a body with a head that its modules describe, without a name; ``head`` gives the head of a body of a
    certain width.

    Raises :class:`ConfigError` for families without a body alone.
    """
    config.ignore("architectures")  # sentence-transformers loads the body, not this class
    if (bare := body_class(family)) is None:
        config.refuse("model_type", "must be a family that has a class without a head, which modules need")
    data = causal_encoder(family.body_spec(config, bare))
    return {**data, "head": head(data["d_model"])}


def body_class(family: Family) -> str | None:
    """Return the class of a family without a head, which sentence-transformers loads; None where it has none."""
    bare = [name for name, head in family.classes.items() if head.kind in ("none", "pooler")]
    encoders = [name for name in bare if name.endswith("EncoderModel")]
    return next(iter(encoders or bare), None)


def read_head(modules: Sequence[Module], d_model: int) -> Data:
    """Return the head of a spec from the modules after a body of this width. Raises :class:`ConfigError`."""
    head: Data = {"kind": "pooled", "output": OUTPUT}
    for module in modules:
        path = module.directory / CONFIG
        present = os.path.lexists(path) or module.kind != "Normalize"
        config = Config.load(path, within=path.parent) if present else Config({}, str(path))
        match module.kind:
            case "Pooling":
                head["pooling"] = _pooling(config, d_model)
            case "Normalize":
                _of_the_vector(config)
                head["normalize"] = True
            case _:
                head |= dense_fields(config, d_model, head)
        config.strict = True
        config.finish()
    return head


def _pooling(config: Config, d_model: int) -> PoolingName:
    _width(config, d_model, "word_embedding_dimension", "embedding_dimension")
    config.must("include_prompt", True, "graphs cannot tell which tokens belong to the prompt")
    flagged = [mode for flag, mode in _FLAGS.items() if config.bool(flag, default=False)] or ["mean"]
    pooling = config.any("pooling_mode") or flagged
    modes = [pooling] if isinstance(pooling, str) else pooling
    name = "pooling_mode" if config.has("pooling_mode") else next(
        (flag for flag, mode in _FLAGS.items() if mode in flagged), "pooling_mode")  # fmt: skip
    if not isinstance(modes, list) or len(modes) != 1:
        config.refuse(
            name, f"must be a single mode, as concatenated vectors are not supported, and it has {modes}"
        )
    if modes[0] not in _POOLINGS:
        config.refuse(name, "is not supported", suggestion(str(modes[0]), _POOLINGS))
    return _POOLINGS[modes[0]]


def dense_fields(config: Config, d_model: int, head: Data) -> Data:
    """Return a Dense module as fields of a head: a dense layer, or a projection without bias."""
    _of_the_vector(config)
    config.must("use_residual", False, "residuals around Dense are not supported")
    first = head.get("projection") if "activation" not in head else None
    if "projection" in head and first is None:
        config.refuse("in_features", "must belong to a layer before the projection: no layer may follow it")
    before = first or head.get("dense_width")
    _width(config, before or d_model, "in_features", of="the layer before" if before else "the body")
    width = config.int("out_features", default=REQUIRED)
    bias = config.bool("bias", default=True)
    activation = config.choice("activation_function", _ACTIVATIONS, "torch.nn.modules.activation.Tanh")
    if activation == "identity" and not bias:
        wider = {} if first is None else {"activation": "identity", "dense_bias": False, "dense_width": first}
        return {**wider, "projection": width}
    if "activation" in head or first is not None:
        config.refuse(
            "activation_function",
            "must be the identity, without a bias, in the second layer: it is a projection",
        )
    wider = {} if width == d_model else {"dense_width": width}
    return {"activation": activation, "dense_bias": bias, **wider}


def _of_the_vector(config: Config) -> None:
    for name in ("module_input_name", "module_output_name"):
        config.must(name, OUTPUT, "only the vector of a text is supported")


def _width(config: Config, d_model: int, *names: str, of: str = "the body") -> None:
    if config.int(*names, default=REQUIRED) != d_model:
        name = next(name for name in names if config.has(name))
        config.refuse(name, f"must be {d_model}, the width of {of}")


# --------------------------------------------------------------------------------------------------------- writing


def write_modules(model: Model, settings: Data) -> dict[str, Data | list[Data]]:
    """Return the JSON files of the modules of a spec with head ``pooled``, by path.

    ``settings`` are those of the module Transformer, empty where there are none yet. Raises :class:`UnfitError` where
    modules cannot express the head.
    """
    head = model.head
    assert isinstance(head, Pooled)
    own = {"max_seq_length": model.context_length_of(model.last_stack), "do_lower_case": False}
    modules = [("Transformer", {}), *_following(head, model.output_width)]
    files: dict[str, Data | list[Data]] = {
        MODULES: [
            {"idx": i, "name": str(i), "path": _path(i, kind), "type": f"sentence_transformers.models.{kind}"}
            for i, (kind, _) in enumerate(modules)
        ],
        SETTINGS: settings or own,
    }
    files |= {f"{_path(i, kind)}/{CONFIG}": data for i, (kind, data) in enumerate(modules) if data}
    return files


def _path(index: int, kind: str) -> str:
    return f"{index}_{kind}" if index else ""


def _following(head: Pooled, d_model: int) -> Iterator[tuple[str, Data]]:
    """Return the modules after the body, and their configs."""
    mode = next((theirs for theirs, ours in _POOLINGS.items() if ours == head.pooling), None)
    if mode is None:
        raise UnfitError(f"head.pooling {head.pooling}")
    if head.norm is not None:
        raise UnfitError(f"head.norm {head.norm.kind}")
    if head.transform != "vector":
        raise UnfitError(f"head.transform {head.transform}")
    yield (
        "Pooling",
        {"word_embedding_dimension": d_model, **{flag: kind == mode for flag, kind in _FLAGS.items()}},
    )
    if head.activation is not None:
        yield DENSE, _dense_config(d_model, head.dense_width or d_model, head.activation, head.dense_bias)
    if head.projection is not None:
        yield DENSE, _dense_config(head.dense_width or d_model, head.projection, "identity", False)
    if head.normalize:
        yield "Normalize", {}


def _dense_config(width: int, out: int, activation: Activation, bias: bool) -> Data:
    name = next((theirs for theirs, ours in _ACTIVATIONS.items() if ours == activation), None)
    if name is None:
        raise UnfitError(f"head.activation {activation}")
    return {"in_features": width, "out_features": out, "bias": bias, "activation_function": name}
