"""The definition of a layout: the graphs that a client loads, their names, and the other files that it reads."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from exporters.graph.precisions import Precision
from exporters.target.targets import Padding, Target
from specs.kinds.sequence_heads import Pooled
from specs.model.model import Model
from zoo.checkpoints.carried import config_files, described, module_files, origin_of, stated_in
from zoo.checkpoints.turns import with_ends_of_turns
from zoo.components.mixer import StateTensor
from zoo.families.common.config import CONFIG
from zoo.generation.settings import GENERATION, generation_fields
from zoo.record.manifest import Manifest
from zoo.record.usage import Usage
from zoo.tracing.task import Task, WindowCache
from zoo.weights.modules import body_directory

Data = dict[str, Any]
"""The content of a JSON file."""

_TOKENS = (
    *(f"{name}_token_id" for name in ("bos", "eos", "pad", "decoder_start")),
    "forced_decoder_ids",
)
"""The fields that transformers reads from the config if the generation settings omit them."""

_TOKENIZER = "tokenizer_config.json"


@dataclass(frozen=True)
class Deployment:
    """The model to deploy, on the meta device, with its target, its precision and the weights option, and whether the client is
    to capture its graphs as CUDA graphs. ``windows``: the caches that hold a window alone, by layer. ``outputs``: the names of
    additional outputs."""

    model: Any
    spec: Model
    target: Target
    precision: Precision
    weights: str
    cuda_graph: bool = False
    windows: Mapping[int, WindowCache] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()

    @functools.cached_property
    def origin(self) -> Path:
        """The directory of the checkpoint with the weights."""
        return origin_of(self.weights)

    @functools.cached_property
    def config(self) -> Data:
        """The config.json of the reference implementation. Raises :class:`zoo.configs.exporting.NoFamilyError`."""
        dtype = str(self.precision.dtype_on(self.target)).removeprefix("torch.")
        return {**described(self.spec, self.origin), "dtype": dtype}

    @functools.cached_property
    def unconfigured(self) -> str | None:
        """Return the reason why ``config`` cannot be written; None if it can."""
        from zoo.configs.exporting import NoFamilyError

        try:
            assert self.config
        except NoFamilyError as error:
            return str(error)
        return None

    @functools.cached_property
    def modules(self) -> Mapping[str, Any]:
        """The sentence-transformers files of a pooled head by path; empty for a head with weights."""
        head = self.spec.head
        if not isinstance(head, Pooled) or head.activation is not None or head.projection is not None:
            return {}
        return module_files(self.spec, self.config, self.origin)

    @functools.cached_property
    def generation(self) -> Data:
        """The checkpoint's generation settings: special tokens, with those that end a turn of a chat, and sampling options."""
        config = stated_in(self.origin / CONFIG)
        settings = stated_in(self.origin / GENERATION)
        tokens = {name: config[name] for name in _TOKENS if config.get(name) is not None}
        return with_ends_of_turns(tokens | (settings or generation_fields(config)), self.origin)


def generation_settings(deployment: Deployment) -> dict[str, Data]:
    """The file of generation settings, for models that generate, if the checkpoint has any."""
    generates = deployment.spec.head.kind == "language_modeling"
    return {GENERATION: deployment.generation} if generates and deployment.generation else {}


def tokenizer_settings(deployment: Deployment) -> dict[str, Data]:
    """The settings without which a client opens no tokenizer, if the checkpoint has a ``tokenizer.json`` alone."""
    directory = body_directory(deployment.origin)
    alone = os.path.lexists(directory / "tokenizer.json") and not os.path.lexists(directory / _TOKENIZER)
    return {_TOKENIZER: {"tokenizer_class": "PreTrainedTokenizerFast"}} if alone else {}


def span_settings(deployment: Deployment) -> dict[str, Data]:
    """GLiNER's config of a model that scores spans, if a family has its encoder."""
    if deployment.spec.head.span_width is None or deployment.unconfigured:
        return {}
    return config_files(deployment.spec, deployment.config, deployment.origin)


@dataclass(frozen=True)
class Layout:
    """The directory layout of one client."""

    name: str
    client: str
    """The client's own name, for messages."""
    guide: tuple[str, str, str]
    """The cells of its row in the guide: client, graphs and other files."""
    tasks: Callable[[Any, Model, bool], list[Task]]
    """Its graphs: the encoder first, the graph of a decoder's further steps last."""
    misfit: Callable[[Deployment], str | None]
    """Returns the reason why the client cannot load a model; None if it can."""
    settings: Callable[[Deployment, bool], Mapping[str, Data]]
    """Its JSON files by name; the flag says whether past and present keys and values may share a buffer."""
    usage: Callable[[Model, Manifest], Usage]
    """A program that loads an export."""
    graph: str = "{task}.onnx"
    """The path of a task's graph in the directory."""
    data: str = "model.onnx.data"
    """The path of the weights of a task's graph."""
    padding: Padding = "right"
    """The side on which the client pads a batch; "right" if it leaves padding to its user."""
    cache_slots: bool = False
    """Whether the client, or its user, can supply the slots of tokens in a static cache."""
    cached_windows: int | None = 0
    """The number of different windows for which the client, or its user, can supply caches; None for any number."""
    lacks: frozenset[str] = frozenset()
    """The operations of targets that the client's ONNX Runtime lacks."""
    via_torch: bool = False
    """Whether PyTorch's own exporter writes it."""
    opsets: bool = False
    """Whether its user can make ONNX Runtime accept opsets that it rejects by default."""
    half_drafts: bool = False
    """Whether its client drafts by multi-token prediction only where scores are in float16."""
    suffixes: Mapping[str, str] = field(default_factory=dict)
    """The names of precisions in file names."""
    suffix: str = ""
    """The suffix in use."""

    def of_precision(self, precision: str) -> Layout:
        """The layout with the file names of a precision."""
        return replace(self, suffix=self.suffixes.get(precision, ""))

    def target(self, target: Target) -> Target:
        """The target, restricted to the padding, the operations and the caches that the client supports."""
        return replace(
            target,
            padding="either" if self.padding == "either" else target.padding,
            operations={name: dtypes for name, dtypes in target.operations.items() if name not in self.lacks},
            static_cache=target.static_cache and self.cache_slots,
        )

    def graph_path(self, task: str) -> str:
        """The path of a task's graph in the directory."""
        return self.graph.format(task=task, suffix=self.suffix)

    def data_path(self, task: str) -> str:
        """The path of the weights of a task's graph, next to the graph."""
        return self.data.format(task=task, suffix=self.suffix)


def unfit_decoder(deployment: Deployment) -> str | None:
    """Return the reason why clients cannot generate text with a decoder; None if they can, and for encoders."""
    spec = deployment.spec
    if spec.decodes and spec.head.kind != "language_modeling":
        return f"it loads only decoders with head language_modeling, and the head is {spec.head.kind}"
    return None


def unfit_hidden_states(deployment: Deployment) -> str | None:
    """Return the reason why clients cannot run a decoder that reads the hidden states of another model; None for others."""
    reads = deployment.spec.reads_hidden_states
    return "it does not provide the hidden states of another model" if reads else None


def unfit_spans(deployment: Deployment) -> str | None:
    """Return the reason why clients of transformers' classes cannot run a model that scores spans; None for others."""
    spans = deployment.spec.head.span_width is not None
    return "it has no class for models that score spans of words" if spans else None


def draft_usage() -> Usage:
    """The command that runs a decoder that reads the hidden states of another model."""
    note = "It reads the hidden states of TARGET, which is exported with --outputs last_hidden_state."
    return Usage("sh", "zoo run TARGET --draft . --text 'Once upon a time'", ["zoo"], note)


def named(state: Sequence[StateTensor]) -> str:
    """The names of the tensors in a layer's state."""
    return " and ".join(tensor.name for tensor in state) or "none"


def unfit_precision(deployment: Deployment) -> str | None:
    """Return the reason why clients cannot exchange tensors of a precision; None if they can."""
    bfloat = deployment.precision.dtype_on(deployment.target) == torch.bfloat16
    return "it does not support bfloat16 tensors" if bfloat else None
