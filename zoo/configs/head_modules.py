"""Encoders in the format of sentence-transformers, written: the modules after the body that describe a head."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from specs.kinds.activation import Activation
from specs.kinds.head import HeadKind
from specs.kinds.retrieval import TOKEN_VECTORS, MultiVector, Several, Sparse
from specs.kinds.sequence_heads import Pooled
from specs.model.model import Model
from zoo.configs.sentence import (
    ACTIVATIONS,
    FLAGS,
    LOGARITHMS,
    OUTPUT,
    POOLINGS,
    QUERY_OUTPUT,
    further_heads,
)
from zoo.families.common.config import CONFIG
from zoo.families.common.template import Data, UnfitError
from zoo.weights.modules import (
    DENSE,
    DOCUMENT,
    MASK,
    MODULES,
    NORMALIZE,
    POOLING,
    QUERY,
    ROUTER,
    ROUTER_PLACE,
    ROUTES,
    SETTINGS,
    SPLADE,
    STATIC,
    STATIC_PLACE,
)

_TYPES = {
    "MLMTransformer": "sentence_transformers.sparse_encoder.models.MLMTransformer",
    SPLADE: "sentence_transformers.sparse_encoder.models.SpladePooling",
    MASK: "sentence_transformers.multi_vector_encoder.modules.MultiVectorMask",
    STATIC: f"sentence_transformers.sparse_encoder.models.{STATIC}",
}
"""The types of modules outside ``sentence_transformers.models``."""


def write_modules(model: Model, settings: Data, *, static: bool = False) -> dict[str, Data | list[Data]]:
    """Return the JSON files of the modules of a spec whose head modules describe, by path.

    ``settings`` are those of the body's module, empty where there are none yet; ``static`` adds the route of static weights for
    the queries of a sparse head. Raises :class:`UnfitError` where modules cannot express the head.
    """
    own = {"max_seq_length": model.context_length_of(model.last_stack), "do_lower_case": False}
    head, width = model.head, model.output_width
    files: dict[str, Data | list[Data]] = {SETTINGS: settings or own}
    if isinstance(head, Several) and list(head.heads) == [QUERY, DOCUMENT]:
        routes = {route: list(_of_route(head, route, width)) for route in head.heads}
        files |= _listed([("Transformer", {}), (ROUTER, {})]) | _router(ROUTER_PLACE, routes)
        return files
    modules = list(_modules(head, width))
    if static and isinstance(head, Sparse):
        document = {_path(index, kind): kind for index, (kind, _) in enumerate(modules)}
        files |= {
            MODULES: [_entry(0, ROUTER, "")],
            ROUTES: _routes({QUERY: {STATIC_PLACE: STATIC}, DOCUMENT: document}),
        }
    else:
        files |= _listed(modules)
    files |= {f"{_path(i, kind)}/{CONFIG}": data for i, (kind, data) in enumerate(modules) if data}
    return files


def _listed(modules: Sequence[tuple[str, Data]]) -> dict[str, Data | list[Data]]:
    """Return the list of modules as a file."""
    return {MODULES: [_entry(i, kind, _path(i, kind)) for i, (kind, _) in enumerate(modules)]}


def _entry(index: int, kind: str, path: str) -> Data:
    return {"idx": index, "name": str(index), "path": path, "type": _type(kind)}


def _type(kind: str) -> str:
    return _TYPES.get(kind, f"sentence_transformers.models.{kind}")


def _router(directory: str, routes: Mapping[str, Sequence[tuple[str, Data]]]) -> dict[str, Data | list[Data]]:
    """Return the files of a Router in a directory, by path."""
    named = {
        route: {f"{route}_{i}_{kind}": (kind, config) for i, (kind, config) in enumerate(modules)}
        for route, modules in routes.items()
    }
    configs = {name: config for modules in named.values() for name, (_, config) in modules.items()}
    kinds = {route: {name: kind for name, (kind, _) in modules.items()} for route, modules in named.items()}
    return {
        f"{directory}/{ROUTES}": _routes(kinds),
        **{f"{directory}/{name}/{CONFIG}": config for name, config in configs.items()},
    }


def _routes(routes: Mapping[str, Mapping[str, str]]) -> Data:
    """Return the list of a Router, from the kinds of each route's modules by path."""
    types = {path: _type(kind) for modules in routes.values() for path, kind in modules.items()}
    structure = {route: list(modules) for route, modules in routes.items()}
    return {"types": types, "structure": structure, "parameters": {"default_route": DOCUMENT}}


def _of_route(head: Several, route: str, d_model: int) -> Iterator[tuple[str, Data]]:
    """Return the modules of a route.  Raises :class:`UnfitError` for a head that is not a pooled one with the route's output."""
    part, output = head.heads[route], QUERY_OUTPUT if route == QUERY else OUTPUT
    if not isinstance(part, Pooled) or part.output != output:
        raise UnfitError(f"head.heads.{route}: must be pooled, with output {output}")
    return _pooled_modules(part, d_model)


def _path(index: int, kind: str) -> str:
    return f"{index}_{kind}" if index else ""


def _modules(head: HeadKind, d_model: int) -> Iterator[tuple[str, Data]]:
    """Return the modules of a model with a head, the body's first, and their configs."""
    match head:
        case Sparse():
            yield "MLMTransformer", {}
            yield SPLADE, _splade_config(head)
        case MultiVector():
            yield "Transformer", {}
            yield from _multi_vector_modules(head, d_model)
        case Pooled():
            yield "Transformer", {}
            yield from _pooled_modules(head, d_model)
        case Several():
            yield from _modules(_dense_head(head, d_model), d_model)


def _dense_head(head: Several, d_model: int) -> HeadKind:
    """Return the head that modules describe beside the layers of BGE-M3."""
    dense = head.heads.get("dense")
    expected = {"dense": dense, **further_heads(d_model)}
    weights = isinstance(dense, Pooled) and dense.activation is None and dense.projection is None
    if dense is None or not weights or Several.model_validate({"heads": expected}) != head:
        raise UnfitError(f"head.heads {', '.join(head.heads)}: only those of BGE-M3")
    return dense


def _splade_config(head: Sparse) -> Data:
    logarithms = {ours: theirs for theirs, ours in LOGARITHMS.items()}
    return {"pooling_strategy": head.pooling, "activation_function": logarithms[head.logarithms]}


def _multi_vector_modules(head: MultiVector, d_model: int) -> Iterator[tuple[str, Data]]:
    names = {"module_input_name": TOKEN_VECTORS, "module_output_name": TOKEN_VECTORS}
    for kind, config in _dense_modules(head, d_model, head.projection, head.projection_bias):
        yield kind, {**config, **names}
    yield MASK, {"skiplist_words": [], "skiplist_tasks": ["document"], "keep_only_token_ids": None}
    if head.normalize:
        yield NORMALIZE, names


def _pooled_modules(head: Pooled, d_model: int) -> Iterator[tuple[str, Data]]:
    mode = next((theirs for theirs, ours in POOLINGS.items() if ours == head.pooling), None)
    if mode is None:
        raise UnfitError(f"head.pooling {head.pooling}")
    if head.transform != "vector":
        raise UnfitError(f"head.transform {head.transform}")
    flags = {flag: kind == mode for flag, kind in FLAGS.items()}
    yield POOLING, {"word_embedding_dimension": d_model, **flags}
    yield from _dense_modules(head, d_model, head.projection, False)
    if head.normalize:
        yield NORMALIZE, {}


def _dense_modules(
    head: Pooled | MultiVector, d_model: int, projection: int | None, bias: bool
) -> Iterator[tuple[str, Data]]:
    """Return the Dense modules of a head: its dense layer and its projection, as far as it has them."""
    if head.norm is not None:
        raise UnfitError(f"head.norm {head.norm.kind}")
    width = head.dense_width or d_model
    if head.activation is not None:
        yield DENSE, _dense_config(d_model, width, head.activation, head.dense_bias)
    if projection is not None:
        yield DENSE, _dense_config(width, projection, "identity", bias)


def _dense_config(width: int, out: int, activation: Activation, bias: bool) -> Data:
    name = next((theirs for theirs, ours in ACTIVATIONS.items() if ours == activation), None)
    if name is None:
        raise UnfitError(f"head.activation {activation}")
    return {"in_features": width, "out_features": out, "bias": bias, "activation_function": name}
