"""Sentence encoders as sentence-transformers keeps them: a config for the body, and modules for what follows it.

The head of such a model is ``pooled``: Pooling, at most two Dense layers, Normalize.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from specs.activation import Activation
from specs.head import Pooled, PoolingName
from specs.model import Model
from specs.suggest import did_you_mean
from zoo.configs.config import CONFIG, REQUIRED, Config, ConfigError
from zoo.configs.family import ConfigFamily, Data, UnfitError
from zoo.weights.modules import DENSE, MODULES, Module, modules_in

SETTINGS = "sentence_bert_config.json"
"""What the module Transformer reads beside the config: how long its inputs may be."""

PROMPTS = "config_sentence_transformers.json"
"""What sentence-transformers keeps of how a model is used: prompts, and the similarity that it is made for."""

OUTPUT = "sentence_embedding"
"""What sentence-transformers calls the vector of a text."""

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
"""The fields of Pooling before version 6, one for each of its modes."""

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
    """The modules after the body of a directory; none where it has no ``modules.json``, or one that lists the body alone.

    Raises :class:`specs.errors.UserError` where they are not those of a model for sentences.
    """
    modules = modules_in(directory)
    if len(modules) < 2:
        return []
    body, *others = modules
    kinds = [module.kind for module in others]
    dense = kinds.count(DENSE)
    if body.kind != "Transformer" or kinds not in _chains(dense):
        raise ConfigError(
            f"{directory / MODULES}: the modules {' -> '.join(module.kind for module in modules)} are not modelled\n"
            "  Transformer, Pooling, at most two of Dense, and Normalize are, in this order; "
            f"give {directory / CONFIG} for the model without them"
        )
    if body.directory != directory:
        raise ConfigError(
            f"{directory / MODULES}: the path of the Transformer must be empty: the directory itself\n"
            f"  value: {body.directory.name!r}\n  move the files of {body.directory} up"
        )
    _check_body(directory / SETTINGS)
    return others


def _chains(dense: int) -> list[list[str]]:
    """The modules after the body that a pooled head can say."""
    start = ["Pooling", *[DENSE] * dense]
    return [start, [*start, "Normalize"]] if dense <= 2 else []


def _check_body(path: Path) -> None:
    if path.exists():
        settings = Config.load(path)
        settings.must("transformer_task", "feature-extraction", "what follows reads the last hidden state")
        settings.must("module_output_name", "token_embeddings", "what follows reads the last hidden state")


def body_class(family: ConfigFamily) -> str | None:
    """The class of a family that sentence-transformers loads, the one without a head; None where it has none."""
    bare = [name for name, head in family.classes.items() if head.kind in ("none", "pooler")]
    encoders = [name for name in bare if name.endswith("EncoderModel")]
    return next(iter(encoders or bare), None)


def read_head(modules: Sequence[Module], d_model: int) -> Data:
    """The head of a spec, from the modules after a body of this width.  Raises :class:`ConfigError`."""
    head: Data = {"kind": "pooled", "output": OUTPUT}
    for module in modules:
        path = module.directory / CONFIG
        config = Config.load(path) if path.exists() or module.kind != "Normalize" else Config({}, str(path))
        match module.kind:
            case "Pooling":
                head["pooling"] = _pooling(config, d_model)
            case "Normalize":
                _of_the_vector(config)
                head["normalize"] = True
            case _:
                head |= _dense(config, d_model, head)
        config.finish(strict=True)
    return head


def _pooling(config: Config, d_model: int) -> PoolingName:
    _width(config, d_model, "word_embedding_dimension", "embedding_dimension")
    config.must("include_prompt", True, "a graph does not know which tokens are of a prompt")
    flagged = [mode for flag, mode in _FLAGS.items() if config.bool(flag, default=False)] or ["mean"]
    stated = config.any("pooling_mode") or flagged
    modes = [stated] if isinstance(stated, str) else stated
    name = "pooling_mode" if config.has("pooling_mode") else next(
        (flag for flag, mode in _FLAGS.items() if mode in flagged), "pooling_mode")  # fmt: skip
    if not isinstance(modes, list) or len(modes) != 1:
        config.refuse(
            name, f"must be one mode: several vectors side by side are not modelled, and it has {modes}"
        )
    if modes[0] not in _POOLINGS:
        config.refuse(name, "is not modelled", did_you_mean(str(modes[0]), _POOLINGS))
    return _POOLINGS[modes[0]]


def _dense(config: Config, d_model: int, head: Data) -> Data:
    """What a Dense layer is in a head: a dense layer of the same width, or a projection without bias."""
    _of_the_vector(config)
    config.must("use_residual", False, "a residual around it is not modelled")
    if "projection" in head:
        config.refuse(
            "in_features", "must be of the last layer that changes the width: one more is not modelled"
        )
    _width(config, d_model, "in_features")
    width = config.int("out_features", default=REQUIRED)
    bias = config.bool("bias", default=True)
    activation = config.choice("activation_function", _ACTIVATIONS, "torch.nn.modules.activation.Tanh")
    if activation == "identity" and not bias:
        return {"projection": width}
    if "activation" in head or width != d_model:
        config.refuse(
            "out_features",
            f"must be {d_model}, as wide as the body, in a layer with a bias or an activation",
            "a layer to another width is modelled without bias and activation, as the last one",
        )
    return {"activation": activation, "dense_bias": bias}


def _of_the_vector(config: Config) -> None:
    for name in ("module_input_name", "module_output_name"):
        config.must(name, OUTPUT, "only the vector of a text is modelled")


def _width(config: Config, d_model: int, *names: str) -> None:
    if config.int(*names, default=REQUIRED) != d_model:
        name = next(name for name in names if config.has(name))
        config.refuse(name, f"must be {d_model}, the width of the body")


# --------------------------------------------------------------------------------------------------------- writing


def write_modules(model: Model, settings: Data) -> dict[str, Data | list[Data]]:
    """The JSON files of the modules of a spec with head ``pooled``, by their paths in a directory.

    ``settings`` are those of the module Transformer, empty where there are none yet.  Raises :class:`UnfitError` where modules
    cannot say what the head is.
    """
    head = model.head
    assert isinstance(head, Pooled)
    own = {"max_seq_length": model.context_length_of(model.last_stack), "do_lower_case": False}
    modules = [("Transformer", {}), *_following(head, model.d_model)]
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
    """The modules after the body, and their configs."""
    mode = next((theirs for theirs, ours in _POOLINGS.items() if ours == head.pooling), None)
    if mode is None:
        raise UnfitError(f"head.pooling {head.pooling}")
    if head.norm is not None:
        raise UnfitError(f"head.norm {head.norm.kind}")
    yield (
        "Pooling",
        {"word_embedding_dimension": d_model, **{flag: each == mode for flag, each in _FLAGS.items()}},
    )
    if head.activation is not None:
        yield DENSE, _dense_config(d_model, d_model, head.activation, head.dense_bias)
    if head.projection is not None:
        yield DENSE, _dense_config(d_model, head.projection, "identity", False)
    if head.normalize:
        yield "Normalize", {}


def _dense_config(width: int, out: int, activation: Activation, bias: bool) -> Data:
    name = next((theirs for theirs, ours in _ACTIVATIONS.items() if ours == activation), None)
    if name is None:
        raise UnfitError(f"head.activation {activation}")
    return {"in_features": width, "out_features": out, "bias": bias, "activation_function": name}
