"""The modules of a sentence-transformers directory, in the order of ``modules.json``."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from zoo.files.json_values import read_list, read_object
from zoo.weights.source import WeightError

SETTINGS = "sentence_bert_config.json"
"""The settings file of the module Transformer, which limits the length of its inputs."""

PROMPTS = "config_sentence_transformers.json"
"""The file of sentence-transformers for usage: prompts, and the similarity function."""

MODULES = "modules.json"
DENSE = "Dense"
LOGIT_SCORE = "LogitScore"
POOLING, NORMALIZE, MASK, SPLADE = "Pooling", "Normalize", "MultiVectorMask", "SpladePooling"
DENSE_PLACES = (f"1_{DENSE}", f"2_{DENSE}", f"3_{DENSE}")
"""The directories of the Dense modules by their place in the list: after Transformer, or after Transformer and Pooling, where a
tensor of the first is ``2_Dense.linear.weight``."""

SIDE_LAYERS = ("colbert_linear", "sparse_linear")
"""The layers of the further heads of BGE-M3, each in a file of its own, ``colbert_linear.pt``, beside the body's."""

ROUTER, ROUTES = "Router", "router_config.json"
"""The module that passes queries and documents to modules of their own, and the file that lists these."""

QUERY, DOCUMENT = "query", "document"
"""The routes of a Router."""

STATIC = "SparseStaticEmbedding"
"""The module that weighs each term of a query by a number, without a body."""

STATIC_PLACE = f"{QUERY}_0_{STATIC}"
"""The directory of that module."""

ROUTER_PLACE = f"1_{ROUTER}"
ROUTE_PLACES = {
    route: tuple(f"{ROUTER_PLACE}/{route}_{index}_{DENSE}" for index in (1, 2)) for route in (QUERY, DOCUMENT)
}
"""The directories of the Dense modules of each route, after Pooling, as they are written; tensors have their names as prefixes."""

_TYPE = re.compile(r"(?:sentence_transformers|pylate)\.(?:\w+\.)*(\w+)")
_PATH = re.compile(r"[\w.-]*")


@dataclass(frozen=True)
class Module:
    """A module: the name of its class in sentence-transformers, or its full type for another library, and its
    directory."""

    kind: str
    directory: Path


def modules_in(directory: Path) -> list[Module]:
    """The modules of a directory, those for documents where queries have others; empty where there is no ``modules.json``.

    Raises as :func:`routes_in`.
    """
    return routes_in(directory)[DOCUMENT]


def routes_in(directory: Path) -> dict[str, list[Module]]:
    """The modules of a directory for documents, and for queries where these have others, as a Router says.

    Raises :class:`WeightError` where the list is damaged, names a path outside the directory, or has other routes.
    """
    index = directory / MODULES
    if not os.path.lexists(index):
        return {DOCUMENT: []}
    modules = [_module(index, entry) for entry in read_list(index, WeightError, directory)]
    routers = [module for module in modules if module.kind == ROUTER]
    if not routers:
        return {DOCUMENT: modules}
    if len(routers) > 1:
        raise WeightError(f"{index}: more than one Router is not supported\n  Save each route as a model.")
    number, (router,) = modules.index(routers[0]), routers
    whole = {
        route: [*modules[:number], *inner, *modules[number + 1 :]]
        for route, inner in _routes(router.directory).items()
    }
    if empty := [route for route, inner in whole.items() if not inner]:
        raise WeightError(f"{router.directory / ROUTES}: structure must have a module for {empty[0]}")
    return whole


def _routes(directory: Path) -> dict[str, list[Module]]:
    """The modules of each route of a Router, whose directory this is."""
    path = directory / ROUTES
    settings = read_object(path, WeightError, directory)
    types, structure, parameters = (settings.get(name) for name in ("types", "structure", "parameters"))
    if (
        not isinstance(types, dict)
        or not isinstance(structure, dict)
        or not all(isinstance(names, list) for names in structure.values())
    ):
        raise WeightError(f"{path}: types must be an object, and structure an object of lists")
    if set(structure) != {QUERY, DOCUMENT} or (
        isinstance(parameters, dict) and parameters.get("route_mappings")
    ):
        raise WeightError(
            f"{path}: only the routes {QUERY} and {DOCUMENT}, without route_mappings, are supported\n"
            f"  value: {', '.join(structure)}\n  Save each route as a model: "
            'SentenceTransformer(modules=[*model[0].sub_modules["NAME"]]).save(...).'
        )
    return {
        route: [_module(path, {"type": types.get(name), "path": name}) for name in names]
        for route, names in structure.items()
    }


def _module(index: Path, entry: Any) -> Module:
    match entry:
        case {"type": str(kind), "path": str(path)} if _is_next_to(index, path):
            known = _TYPE.fullmatch(kind)
            return Module(known[1] if known else kind, index.parent / path)
    raise WeightError(
        f"{index}: each module must have a type, and a path that is empty or a directory next to it"
    )


def _is_next_to(index: Path, path: str) -> bool:
    """Whether a path is empty or names a directory next to the list, and is no link to another place."""
    plain = _PATH.fullmatch(path) and path not in (".", "..")
    return bool(plain) and not (path and (index.parent / path).is_symlink())


def body_directory(directory: Path) -> Path:
    """The directory of the config, the weights and the tokenizer: of the first module, or the directory itself if it lists none.

    Raises as :func:`routes_in`.
    """
    return next((module.directory for module in modules_in(directory)), directory)


def static_queries(directory: Path) -> Path | None:
    """The directory of the static weights of queries; None where queries have none.  Raises as :func:`routes_in`."""
    query = routes_in(directory).get(QUERY, [])
    return query[0].directory if [module.kind for module in query] == [STATIC] else None


def dense_modules(directory: Path) -> dict[str, Path]:
    """The directories of the Dense modules, in order, by the prefixes of their tensors."""
    routes = routes_in(directory)
    if QUERY not in routes or static_queries(directory):
        modules = enumerate(routes[DOCUMENT])
        return {f"{index}_{DENSE}": module.directory for index, module in modules if module.kind == DENSE}
    return {
        prefix: module.directory
        for route, places in ROUTE_PLACES.items()
        for prefix, module in zip(places, (m for m in routes[route] if m.kind == DENSE), strict=False)
    }


def side_layers(directory: Path) -> dict[str, Path]:
    """The files of further heads beside the body's, by the prefixes of their tensors; all of them, or none."""
    files = {name: directory / f"{name}.pt" for name in SIDE_LAYERS}
    return files if all(os.path.lexists(path) for path in files.values()) else {}


_PLACES = {*DENSE_PLACES, *SIDE_LAYERS, *chain.from_iterable(ROUTE_PLACES.values())}


def split_name(tensor: str) -> tuple[str, str]:
    """The directory or further head of a stored tensor, empty for the body, and the tensor's name there."""
    module, _, name = tensor.partition(".")
    return (module, name) if module in _PLACES else ("", tensor)
