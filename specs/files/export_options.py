"""The options of an export, each stated once.

The flags of ``zoo build`` and ``zoo export``, the entries of a zoo file, the names of default directories, the table in
the documentation and the record in ``export.json`` are read from these fields: type, default, docstring and
:class:`OptionMark`. Rules that need the tables of targets, layouts and precisions are in :mod:`exporters.steps.options`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import AfterValidator, BeforeValidator, Field

from specs.base.base import Spec, custom_error
from specs.base.errors import UserError, option_name
from specs.files.export_keywords import LAYOUTS, TARGETS
from specs.files.layer_outputs import requested

PrecisionName = Literal["fp32", "fp16", "bf16", "int8", "int4", "q4f16"]
CachePrecision = Literal["float", "int8", "int4"]
_ADAPTER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class OptionMark:
    """Annotation of an option.

    ``group`` is its group in help. ``word`` is its word in the names of default directories, with {} for the value; options
    without a word do not shape the files. ``metavar`` stands for its value in help, if the type lists no choices. ``names`` are
    the values that zoo itself has, of an option whose values packages add to.
    """

    group: str
    word: str = ""
    metavar: str = ""
    names: tuple[str, ...] = ()


def _nats(value: float) -> float:
    if not 0 <= value < float("inf"):
        raise custom_error("must be 0 nats or more", "Use 0.05, for example.")
    return value


def _cosine(value: float) -> float:
    if not -1 <= value <= 1:
        raise custom_error("must be from -1 to 1", "Use 0.99, for example.")
    return value


def _path(value: Any) -> Any:
    return Path(value) if isinstance(value, str) else value


def _path_text(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _names(value: Any) -> Any:
    names = (value,) if isinstance(value, str) else value
    return tuple(dict.fromkeys(names)) if isinstance(names, list | tuple) else names


def _layer_output(value: str) -> str:
    requested(value)
    return value


Count = Annotated[int, Field(gt=0)]
Strings = Annotated[tuple[str, ...], BeforeValidator(_names)]
LayerOutputs = Annotated[tuple[Annotated[str, AfterValidator(_layer_output)], ...], BeforeValidator(_names)]


class PlaceOptions(Spec):
    """Where the files run, and how their weights are stored."""

    precision: Annotated[PrecisionName, OptionMark("Precision", "{}")] = "fp32"
    """Precision of the stored weights; int8 and int4 apply to matrices only."""
    target: Annotated[str, OptionMark("Where it runs", "{}", names=TARGETS)] = "portable"
    """Runtime platform of the graphs."""
    layout: Annotated[str, OptionMark("Where it runs", "{}", names=LAYOUTS)] = "onnx"
    """Client that will load the directory."""


class GraphOptions(Spec):
    """The form of the graphs and of quantized weights."""

    logits: Annotated[Literal["all", "last"], OptionMark("Graphs", "{}-logits")] = "all"
    """Positions to score: all, or only the last non-padding token of each row (enough for generation)."""
    outputs: Annotated[LayerOutputs, OptionMark("Graphs", "{}", "KIND:LAYERS")] = ()
    """Additional outputs: hidden:9,-2 (hidden states, numbered as in transformers), attention:all or cross:0 (attention weights), or
    last_hidden_state (the input of the head); repeatable. decoder.hidden:9 names one of several stacks."""
    via: Annotated[Literal["fx", "torch"], OptionMark("Graphs", "via-{}")] = "fx"
    """Tracer: fx, or torch (the PyTorch exporter) for components that fx cannot trace."""
    opset: Annotated[Count | None, OptionMark("Graphs", "opset-{}", "N")] = None
    """Opset of all graphs; 27 has LinearAttention and CausalConvWithState (target portable only). Default: the lowest that each
    graph needs."""
    block_size: Annotated[Literal[32, 64, 128], OptionMark("int4 only", "block-{}")] = 32
    """Quantization block size, in values per scale (int4 and q4f16)."""
    asymmetric: Annotated[bool, OptionMark("int4 only", "asymmetric")] = False
    """Store a zero point per quantization block (int4 and q4f16)."""
    head_precision: Annotated[Literal["int8", "int4"], OptionMark("int4 only", "head-{}")] = "int8"
    """Precision of token tables and language-model heads (int4 and q4f16)."""


class RoundingOptions(Spec):
    """The values to which weights are rounded."""

    rounding: Annotated[Literal["gptq", "nearest"] | None, OptionMark("int4 only", "{}")] = None
    """Rounding method (int4 and q4f16); gptq is more accurate and needs representative inputs. Default: gptq for real weights."""
    budget: Annotated[str | None, OptionMark("int4 only", "budget-{}", "SIZE")] = None
    """Maximum size of the data file (105MB, 110000000) or mean bits per weight (4.8bits); sensitive layers get 8 or 16 bits (int4
    and q4f16)."""


class CacheOptions(Spec):
    """The activations and caches of the graphs."""

    activations: Annotated[Literal["static", "dynamic"] | None, OptionMark("Quality", "{}-activations")] = (
        None
    )
    """Scales of int8 activations: static from calibration (int8 encoders on portable and cpu), or dynamic per input. Default:
    static for real weights."""
    cache_length: Annotated[Count | None, OptionMark("KV cache", "cache-{}")] = None
    """Capacity of a fixed-size KV cache, in tokens (target tensorrt only). Default: the context length."""
    cache_precision: Annotated[CachePrecision, OptionMark("KV cache", "{}-cache")] = "float"
    """Precision of the KV cache; int8 and int4 use calibrated scales (target cpu or cuda only)."""
    window_cache: Annotated[bool, OptionMark("KV cache", "window-cache")] = False
    """Cache only the window in layers with one (target cpu or cuda; layout onnx or genai); all rows of a batch then have the same
    length."""
    cuda_graph: Annotated[bool, OptionMark("KV cache", "cuda-graph")] = False
    """Let the client capture each step as a CUDA graph (target cuda, layout genai)."""


class ArtefactOptions(CacheOptions, RoundingOptions, GraphOptions, PlaceOptions):
    """The options of one artefact of a zoo file, under the names that ``zoo export`` has."""

    verify: Annotated[bool, OptionMark("Quality")] = True
    """Compare ONNX Runtime with PyTorch, and rounded weights with the float model. The weights are the same without it."""
    engines: Annotated[Strings, OptionMark("Quality", metavar="NAME")] = ()
    """Verify the files on this engine as well; repeatable (zoo engines lists them)."""
    calibrate: Annotated[Path | None, BeforeValidator(_path), OptionMark("Quality", metavar="FILE")] = None
    """Representative inputs for calibration and quality: UTF-8 text, token ids (.npy), named arrays (.npz), an image or audio
    (.wav), or a directory of them, where a text (.txt) of the same name may belong to an image. Default: built-in prose, or
    generated text; none for images and audio."""
    max_kl: Annotated[
        Annotated[float, AfterValidator(_nats)] | None, OptionMark("Quality", metavar="NATS")
    ] = None
    """Maximum KL divergence from the float model, in nats, for models with logits. Default: fp16 0.001, bf16 0.01, int8 0.05, int4
    0.5, q4f16 0.5; an int8 cache adds 0.01, an int4 cache 0.3."""
    min_cosine: Annotated[
        Annotated[float, AfterValidator(_cosine)] | None, OptionMark("Quality", metavar="C")
    ] = None
    """Minimum mean cosine to the float model, for models that return vectors. Default: fp16 0.9999, bf16 0.999, int8 0.98, int4
    0.95, q4f16 0.95; minus 0.001 with an int8 cache, 0.02 with int4."""


class WeightOptions(Spec):
    """The weights of an export."""

    weights: Annotated[str, BeforeValidator(_path_text), OptionMark("Model", metavar="SOURCE")] = "random"
    """Weights: random, none (graph only), a file, directory or hub repository. Default: SPEC's own, or random."""
    adapters: Annotated[Strings, OptionMark("Graphs", metavar="NAME=DIR")] = ()
    """LoRA adapter of PEFT that clients can switch on, as a file beside the graph (NAME.onnx_adapter); repeatable."""
    seed: Annotated[int, Field(ge=0), OptionMark("Random weights")] = 0
    """Seed for random weights."""


class OptionTable(ArtefactOptions, WeightOptions):
    """Every option of an export; its values are checked one by one, not against each other."""

    provider: Annotated[str | None, OptionMark("Quality", metavar="NAME")] = None
    """Execution provider of ONNX Runtime to run on: cpu, cuda, or any other that is installed. Default: the first of the export's
    target that this machine has."""


def mark_of(name: str) -> OptionMark:
    """The mark of an option."""
    marks = (mark for mark in OptionTable.model_fields[name].metadata if isinstance(mark, OptionMark))
    return next(marks)


def default_of(name: str) -> Any:
    """The default of an option."""
    return OptionTable.model_fields[name].default


def choices_of(name: str) -> tuple[Any, ...]:
    """The values of an option that is one of several; empty for others."""
    annotation = OptionTable.model_fields[name].annotation
    for part in (annotation, *get_args(annotation)):
        if get_origin(part) is Literal:
            return get_args(part)
    return ()


def directory_words(options: ArtefactOptions) -> list[str]:
    """The words of a default directory: one for each option that shapes the files and is not at its default."""
    return [
        mark.word.format(option_word(value))
        for name, value in options
        if (mark := mark_of(name)).word and value != default_of(name)
    ]


def adapter_sources(arguments: Sequence[str]) -> dict[str, str]:
    """The sources of adapters by their names, from NAME=DIR.  Raises :class:`specs.base.errors.UserError`."""
    option, sources = option_name("adapters"), dict[str, str]()
    for argument in arguments:
        name, _, source = argument.partition("=")
        if not source or not _ADAPTER.fullmatch(name):
            raise UserError(
                f"{option} must be NAME=DIR, with a name of letters, digits, '.', '_' and '-'\n  value: {argument}"
            )
        if name.lower() in map(str.lower, sources):  # some systems compare names of files without case
            raise UserError(
                f"{option} has two adapters called {name}\n  value: {argument}\n  Give each a name of its own."
            )
        sources[name] = source
    return sources


def option_word(value: Any) -> str:
    """The value of an option in the name of a directory."""
    words = re.sub("[:,]", "-", "-".join(value)) if isinstance(value, tuple) else str(value)
    return words.replace("/", "_").replace(" ", "")
