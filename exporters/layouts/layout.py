"""What a layout is: which graphs a client loads, what they are called, and what it reads beside them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from exporters.precisions import Precision
from exporters.targets import Padding, Target
from specs.head import Pooled
from specs.model import Model
from zoo.checkpoints.carried import GENERATION, described, module_files, origin_of, stated_in
from zoo.configs.config import CONFIG
from zoo.configs.exporting import NoFamilyError
from zoo.tracing.tasks import Task

Data = dict[str, Any]
"""What goes into a JSON file."""

_TOKENS = (
    *(f"{name}_token_id" for name in ("bos", "eos", "pad", "decoder_start")),
    "forced_bos_token_id",
    "forced_eos_token_id",
)


@dataclass(frozen=True)
class Deployment:
    """What a client is to load: a model on the meta device, where it is to run, how its weights are stored, and what the
    user named as weights."""

    model: Any
    spec: Model
    target: Target
    precision: Precision
    weights: str

    @functools.cached_property
    def origin(self) -> Path:
        """The checkpoint that the weights are from, if they are from one."""
        return origin_of(self.weights)

    @functools.cached_property
    def config(self) -> Data:
        """The config.json of the reference implementation.  Raises :class:`zoo.configs.exporting.NoFamilyError`."""
        dtype = str(self.precision.dtype_on(self.target)).removeprefix("torch.")
        return {**described(self.spec, self.origin), "dtype": dtype}

    @functools.cached_property
    def unconfigured(self) -> str | None:
        """Why there is no ``config``; None where there is one."""
        try:
            assert self.config
        except NoFamilyError as error:
            return str(error)
        return None

    @functools.cached_property
    def modules(self) -> Mapping[str, Any]:
        """The files of sentence-transformers that say a pooled head, by path; none where they would need weights beside them."""
        head = self.spec.head
        if not isinstance(head, Pooled) or head.activation is not None or head.projection is not None:
            return {}
        return module_files(self.spec, self.config, self.origin)

    @functools.cached_property
    def generation(self) -> Data:
        """How the checkpoint is used to generate: its special tokens, as far as they are known, and what it says of
        sampling."""
        config = stated_in(self.origin / CONFIG)
        tokens = {name: config[name] for name in _TOKENS if config.get(name) is not None}
        return tokens | stated_in(self.origin / GENERATION)


@dataclass(frozen=True)
class Layout:
    """A directory as one client loads it.

    ``tasks`` are its graphs, the encoder's first and the last that of every further step of a decoder; ``graph`` and
    ``data`` the paths of a graph and of its weights in the directory, for a ``task``.  ``misfit`` says why the client
    cannot load something, or None; ``settings`` are its JSON files by name, and told whether
    past and present keys and values may share a buffer.  ``suffixes`` stand for precisions in the names of files.

    ``padding`` is what a decoder's graph may ask for: "right" where the client pads on the right, or leaves padding to
    its user.  ``places`` says that the client, or its user, can give the places of tokens in caches that do not grow.
    """

    name: str
    client: str
    tasks: Callable[[Any, Model, bool], list[Task]]
    misfit: Callable[[Deployment], str | None]
    settings: Callable[[Deployment, bool], Mapping[str, Data]]
    graph: str = "{task}.onnx"
    data: str = "model.onnx.data"
    padding: Padding = "right"
    places: bool = False
    suffixes: Mapping[str, str] = field(default_factory=dict)
    suffix: str = ""

    def of_precision(self, precision: str) -> Layout:
        """The same with the file names of a precision."""
        return replace(self, suffix=self.suffixes.get(precision, ""))

    def target(self, target: Target) -> Target:
        """A target, without the operations that the client's padding is not for, and the caches that it cannot hold."""
        padding = "either" if self.padding == "either" else target.padding
        return replace(target, padding=padding, static_cache=target.static_cache and self.places)

    def graph_path(self, task: str) -> str:
        """Where the graph of a task stands in the directory."""
        return self.graph.format(task=task, suffix=self.suffix)

    def data_path(self, task: str) -> str:
        """Where the weights of a task's graph stand in the directory, beside the graph."""
        return self.data.format(task=task, suffix=self.suffix)


def unfit_decoder(deployment: Deployment) -> str | None:
    """Why clients cannot generate text with a decoder, with or without an encoder; None where they can, or there is none."""
    spec = deployment.spec
    if spec.architecture != "encoder" and spec.head.kind != "language_modeling":
        return f"of decoders it loads those with head language_modeling, and not with {spec.head.kind}"
    return None


def unfit_precision(deployment: Deployment) -> str | None:
    """Why clients cannot feed or read tensors of a precision; None where they can."""
    bfloat = deployment.precision.dtype_on(deployment.target) == torch.bfloat16
    return "it knows no tensors of bfloat16" if bfloat else None
