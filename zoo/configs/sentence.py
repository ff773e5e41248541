"""Encoders in the format of sentence-transformers, read: a config for the body, and the modules after it.

The head of such a model is ``pooled`` (Pooling, at most two Dense layers, Normalize), ``multi_vector`` (at most two Dense layers,
MultiVectorMask, Normalize) or ``sparse`` (SpladePooling after a body that scores masked tokens). A Router gives heads for queries and
for documents, both ``pooled``; static weights of queries are carried, not part of the spec.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from specs.base.suggest import suggestion
from specs.kinds.activation import Activation
from specs.kinds.pooling import PoolingName
from specs.kinds.retrieval import TERM_WEIGHTS, TOKEN_VECTORS
from specs.kinds.vocabulary_heads import MaskedLanguageModeling
from zoo.configs.causal_encoder import causal_encoder
from zoo.families.common.config import CONFIG, Config
from zoo.families.common.config_errors import ConfigError
from zoo.families.common.family import Family
from zoo.families.common.template import Data
from zoo.families.common.typed_fields import REQUIRED
from zoo.weights.modules import (
    DENSE,
    DOCUMENT,
    MASK,
    MODULES,
    NORMALIZE,
    POOLING,
    PROMPTS,
    QUERY,
    SETTINGS,
    SPLADE,
    STATIC,
    Module,
    routes_in,
    side_layers,
    static_queries,
)

OUTPUT = TERM_WEIGHTS
"""The name of a text's vector in sentence-transformers, sparse or not."""

QUERY_OUTPUT = "query_embedding"
"""The name of a query's vector where documents have another head."""

POOLINGS: dict[str, PoolingName] = {
    "cls": "first",
    "max": "max",
    "mean": "mean",
    "mean_sqrt_len_tokens": "mean_sqrt_length",
    "weightedmean": "weighted_mean",
    "lasttoken": "last",
}
FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""The fields of Pooling before version 6, one per mode."""

ACTIVATIONS: dict[str, Activation] = {
    "torch.nn.modules.activation.Tanh": "tanh",
    "torch.nn.modules.linear.Identity": "identity",
    "torch.nn.modules.activation.ReLU": "relu",
    "torch.nn.modules.activation.GELU": "gelu",
    "torch.nn.modules.activation.SiLU": "silu",
    "torch.nn.modules.activation.Sigmoid": "sigmoid",
}

LOGARITHMS = {"relu": 1, "log1p_relu": 2}
"""The names in SpladePooling for how many logarithms are taken."""


def sentence_modules(directory: Path) -> list[Module]:
    """Return the modules after the body of a directory, those for documents where queries have others; none without a
    ``modules.json``, or where it lists only the body.

    Raises :class:`specs.base.errors.UserError` for unsupported modules.
    """
    routes = routes_in(directory)
    query, document = routes.get(QUERY), routes[DOCUMENT]
    if not document:
        return []
    others = _after_body(directory, document)
    if query is not None and not static_queries(directory):
        second = {module.kind for route in (query, document) for module in route[1:2]}
        if query != document and (query[:1] != document[:1] or second != {POOLING} or len(query) == 1):
            raise ConfigError(
                f"{directory / MODULES}: queries and documents must share Transformer and have Pooling each, or queries have "
                f"{STATIC} alone\n  value: {_chain(query)}, and {_chain(document)}\n"
                "  Save each route as a model, and export both: "
                'SentenceTransformer(modules=[*model[0].sub_modules["query"]]).save("query").'
            )
        _after_body(directory, query)
    elif query is not None and [module.kind for module in others] != [SPLADE]:
        raise ConfigError(
            f"{directory / MODULES}: {STATIC} for queries needs documents with {SPLADE}\n  value: {_chain(document)}\n"
            "  Save the route for documents as a model of its own."
        )
    return others


def _chain(modules: Sequence[Module]) -> str:
    return " -> ".join(module.kind for module in modules)


def _after_body(directory: Path, modules: Sequence[Module]) -> list[Module]:
    """Return the modules after the body.  Raises :class:`ConfigError` for a chain that no head expresses."""
    body, *others = modules
    kinds = [module.kind for module in others]
    bodies = ("Transformer", "MLMTransformer") if kinds == [SPLADE] else ("Transformer",)
    if body.kind not in bodies or (kinds and not re.fullmatch(_CHAINS, " ".join(kinds))):
        raise ConfigError(
            f"{directory / MODULES}: the modules {_chain(modules)} are not supported\n"
            "  Use Transformer, Pooling, at most two Dense and Normalize, in this order; Transformer, at most two Dense, "
            "MultiVectorMask and Normalize; Transformer and SpladePooling; or Transformer and LogitScore, "
            f"or pass {body.directory / CONFIG} for the model without modules."
        )
    if others:
        _check_body(body.directory / SETTINGS, scores=kinds == [SPLADE])
    return others


_CHAINS = "|".join(
    (
        rf"{POOLING}( {DENSE}){{0,2}}( {NORMALIZE})?",
        rf"{DENSE}( {DENSE})?( {MASK})?( {NORMALIZE})?",
        rf"{MASK}( {NORMALIZE})?",
        SPLADE,
    )
)
"""The sequences of modules after the body that a head can express."""


def _check_body(path: Path, *, scores: bool) -> None:
    if os.path.lexists(path):
        settings = Config.load(path, within=path.parent)
        if scores:
            settings.must("transformer_task", "fill-mask", "SpladePooling reads the scores of tokens")
        else:
            settings.must(
                "transformer_task", "feature-extraction", "later modules read the last hidden state"
            )
        settings.must("module_output_name", TOKEN_VECTORS, "later modules read it under this name")


def spec_of_modules(directory: Path, modules: Sequence[Module], config: Config, family: Family) -> Data:
    """Return the spec of a body with the head that the modules after it describe, without a name. Raises
    :class:`ConfigError`."""
    match modules[0].kind:
        case "SpladePooling":
            return sparse_spec(_splade_pooling(modules[0]), config, family)
        case "Pooling" if query := routes_in(directory).get(QUERY):
            read = functools.partial(read_routes, query[1:], modules)
        case "Pooling":
            read = functools.partial(read_several if side_layers(directory) else read_head, modules)
        case _:
            read = functools.partial(read_multi_vector, directory, modules)
    return sentence_spec(read, config, family)


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


def sparse_spec(pooling: Data, config: Config, family: Family) -> Data:
    """Return the spec of a body that scores masked tokens with a sparse head, without a name; ``pooling`` are the keys of the head
    that are not in its config.

    Raises :class:`ConfigError` for families that do not score masked tokens.
    """
    config.ignore("architectures")
    if (masked := masked_class(family)) is None:
        config.refuse("model_type", f"must be a family that scores masked tokens, which {SPLADE} needs")
    data = family.spec(config, masked)
    return {**data, "head": {**data["head"], "kind": "sparse", **pooling}}


def masked_class(family: Family) -> str | None:
    """Return the class of a family that scores masked tokens; None where it has none."""
    kind = MaskedLanguageModeling.model_fields["kind"].default
    return next((name for name, head in family.classes.items() if head.kind == kind), None)


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
                _reads(config, OUTPUT)
                head["normalize"] = True
            case _:
                head |= dense_fields(config, d_model, head)
        config.strict = True
        config.finish()
    return head


def read_routes(query: Sequence[Module], document: Sequence[Module], d_model: int) -> Data:
    """Return the heads of a body with modules of its own for queries and for documents. Raises :class:`ConfigError`."""
    heads = {
        QUERY: {**read_head(query, d_model), "output": QUERY_OUTPUT},
        DOCUMENT: read_head(document, d_model),
    }
    return {"kind": "several", "heads": heads}


def read_several(modules: Sequence[Module], d_model: int) -> Data:
    """Return the head of BGE-M3: the dense head of its modules, and the heads of the layers beside the body.

    Raises :class:`ConfigError`.
    """
    return {"kind": "several", "heads": {"dense": read_head(modules, d_model), **further_heads(d_model)}}


def further_heads(d_model: int) -> Data:
    """Return the heads of BGE-M3 with a layer beside the body."""
    vectors = {"kind": "multi_vector", "projection": d_model, "projection_bias": True}
    return {"sparse": {"kind": "token_weights"}, "multi_vector": vectors}


def read_multi_vector(directory: Path, modules: Sequence[Module], d_model: int) -> Data:
    """Return the head of a spec from the modules for late interaction after a body of this width. Raises :class:`ConfigError`.

    Directories of PyLate do not state that vectors are normalized, and they always are.
    """
    usage = directory / PROMPTS
    library = Config.load(usage, within=directory).any("model_type") if os.path.lexists(usage) else None
    normalized = any(module.kind == NORMALIZE for module in modules)
    head: Data = {"kind": "multi_vector", "normalize": normalized or library != "MultiVectorEncoder"}
    for module in modules:
        path = module.directory / CONFIG
        if module.kind == MASK or (module.kind == NORMALIZE and not os.path.lexists(path)):
            continue  # which tokens count is the caller's choice
        config = Config.load(path, within=path.parent)
        if module.kind == NORMALIZE:
            _reads(config, TOKEN_VECTORS)
        else:
            head |= dense_fields(config, d_model, head, TOKEN_VECTORS)
        config.strict = True
        config.finish()
    return head


def stanford_head(config: Config, d_model: int) -> Data:
    """Return the head of Stanford's ColBERT: a projection without bias, to 128 numbers if its config does not state another width."""
    return {"kind": "multi_vector", "projection": config.int("dim", default=128)}


def _splade_pooling(module: Module) -> Data:
    """Return the keys of a sparse head that its module states."""
    path = module.directory / CONFIG
    config = Config.load(path, within=path.parent)
    config.ignore("embedding_dimension", "word_embedding_dimension")
    pooling = config.choice("pooling_strategy", {"max": "max", "sum": "sum"}, "max")
    logarithms = config.choice("activation_function", LOGARITHMS, "relu")
    config.strict = True
    config.finish()
    return {"pooling": pooling, "logarithms": logarithms}


def _pooling(config: Config, d_model: int) -> PoolingName:
    _width(config, d_model, "word_embedding_dimension", "embedding_dimension")
    config.must("include_prompt", True, "graphs cannot tell which tokens belong to the prompt")
    flagged = [mode for flag, mode in FLAGS.items() if config.bool(flag, default=False)] or ["mean"]
    pooling = config.any("pooling_mode") or flagged
    modes = [pooling] if isinstance(pooling, str) else pooling
    name = "pooling_mode" if config.has("pooling_mode") else next(
        (flag for flag, mode in FLAGS.items() if mode in flagged), "pooling_mode")  # fmt: skip
    if not isinstance(modes, list) or len(modes) != 1:
        config.refuse(
            name, f"must be a single mode, as concatenated vectors are not supported, and it has {modes}"
        )
    if modes[0] not in POOLINGS:
        config.refuse(name, "is not supported", suggestion(str(modes[0]), POOLINGS))
    return POOLINGS[modes[0]]


def dense_fields(config: Config, d_model: int, head: Data, output: str = OUTPUT) -> Data:
    """Return a Dense module as fields of a head: a dense layer, or a projection."""
    _reads(config, output)
    config.must("use_residual", False, "residuals around Dense are not supported")
    first = head.get("projection") if "activation" not in head else None
    if "projection" in head and first is None:
        config.refuse("in_features", "must belong to a layer before the projection: no layer may follow it")
    before = first or head.get("dense_width")
    _width(config, before or d_model, "in_features", of="the layer before" if before else "the body")
    width = config.int("out_features", default=REQUIRED)
    bias = config.bool("bias", default=True)
    activation = config.choice("activation_function", ACTIVATIONS, "torch.nn.modules.activation.Tanh")
    if activation == "identity" and not bias:
        wider = {} if first is None else {"activation": "identity", "dense_bias": False, "dense_width": first}
        return {**wider, "projection": width}
    if activation == "identity" and output == TOKEN_VECTORS and ("activation" in head or width != d_model):
        return {"projection": width, "projection_bias": True}
    if "activation" in head or first is not None:
        config.refuse(
            "activation_function",
            "must be the identity, without a bias, in the second layer: it is a projection",
        )
    wider = {} if width == d_model else {"dense_width": width}
    return {"activation": activation, "dense_bias": bias, **wider}


def _reads(config: Config, output: str) -> None:
    because = (
        "only the vector of a text is supported"
        if output == OUTPUT
        else "late interaction needs a vector per token"
    )
    for name in ("module_input_name", "module_output_name"):
        config.must(name, output, because)


def _width(config: Config, d_model: int, *names: str, of: str = "the body") -> None:
    if config.int(*names, default=REQUIRED) != d_model:
        name = next(name for name in names if config.has(name))
        config.refuse(name, f"must be {d_model}, the width of {of}")
