"""The options of an export, and the rules between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import torch

from exporters.graph.precisions import PRECISIONS
from exporters.graph.quantization.cache_scheme import CACHE_FORMATS, CacheFormat
from exporters.graph.quantization.scheme import BLOCK_SIZES
from exporters.layouts import DEFAULT, LAYOUTS
from exporters.rounding.size_budget import SizeBudget
from exporters.target.providers import CUDA, on_provider
from exporters.target.targets import TARGETS, Target
from exporters.verification.engines.check import check_engines
from specs.base.errors import UserError, option_name
from specs.base.suggest import suggestion

SHAPING = (
    "via", "opset", "logits", "block_size", "asymmetric", "head_precision", "cache_length", "cache_precision", "activations",
    "cuda_graph",
)  # fmt: skip
"""The options that shape the files, in addition to target, precision and layout."""

ACTIVATIONS = ("dynamic", "static")
"""How the scales of 8-bit inputs are found: from each input, or by calibration."""


@dataclass(frozen=True)
class Options:
    """The options of an export.

    ``target``, ``precision`` and ``layout`` name rows of :mod:`exporters.target.targets`, :mod:`exporters.graph.precisions` and
    :mod:`exporters.layouts`. For int4, ``block_size`` and ``asymmetric`` describe the blocks, ``head_precision`` is
    the precision of embeddings and their heads, and ``rounding`` is nearest or gptq (:mod:`exporters.rounding.gptq`;
    the default for real weights). ``weights`` is random, none (the graph alone), module (the weights of
    :func:`exporters.export.export_module`), or a path. ``verify`` compares the files with the PyTorch model. ``via``
    is fx, zoo's own tracer, or torch, PyTorch's exporter. ``opset`` is the opset of all graphs, one of
    :attr:`exporters.target.targets.Target.opsets` (default: the lowest that each graph needs). ``cache_precision`` is the format in which a decoder caches
    keys and values: float, int8 or int4 (:mod:`exporters.quantized_cache`). ``cache_length`` is the length of caches
    of fixed length, in tokens (default: the context length).

    ``calibrate`` is a file of representative inputs (:mod:`exporters.quality.inputs`), for which real weights are
    rounded and on which rounding is judged; ``max_kl`` and ``min_cosine`` limit the loss (default:
    :data:`exporters.quality.budget.LIMITS`). ``budget`` is the largest size of an int4 export of real weights, such
    as 105MB or 4.8bits per weight: the matrices that lose most in 4 bits get 8 or 16
    (:mod:`exporters.rounding.bit_plan`). ``activations`` is static (calibrated scales) or dynamic, for the inputs of
    int8 products (default: static for encoders with real weights, where the target multiplies integers and inputs are
    available). ``engines`` name rows of :mod:`exporters.verification.engines.table` on which the files are proven as well, and
    ``provider`` the one of ONNX Runtime that verifies them (default: the first of the target that this machine has).
    With ``cuda_graph`` the settings for the client ask it to capture each step as a CUDA graph.

    Raises :class:`specs.base.errors.UserError` for an unknown value, and for options that exclude each other.
    """

    target: str = "portable"
    weights: str = "random"
    seed: int = 0
    verify: bool = True
    via: str = "fx"
    opset: int | None = None
    logits: str = "all"
    layout: str = DEFAULT
    precision: str = "fp32"
    block_size: int = 32
    asymmetric: bool = False
    head_precision: str = "int8"
    cache_length: int | None = None
    calibrate: Path | None = None
    max_kl: float | None = None
    min_cosine: float | None = None
    rounding: str | None = None
    budget: str | None = None
    cache_precision: str = "float"
    activations: str | None = None
    engines: Sequence[str] = ()
    provider: str | None = None
    cuda_graph: bool = False

    def __post_init__(self) -> None:
        engines = (self.engines,) if isinstance(self.engines, str) else tuple(dict.fromkeys(self.engines))
        object.__setattr__(self, "engines", engines)
        for option, value, known in (
            (option_name("target"), self.target, TARGETS),
            (option_name("via"), self.via, ("fx", "torch")),
            (option_name("logits"), self.logits, ("all", "last")),
            (option_name("layout"), self.layout, LAYOUTS),
            (option_name("precision"), self.precision, PRECISIONS),
            (option_name("head_precision"), self.head_precision, ("int4", "int8")),
            (option_name("rounding"), self.rounding or "nearest", ("gptq", "nearest")),
            (option_name("cache_precision"), self.cache_precision, CACHE_FORMATS),
            (option_name("activations"), self.activations or "dynamic", ACTIVATIONS),
        ):
            if value not in known:
                raise UserError(f"{option} {value!r} is unknown\n  {suggestion(value, known)}")
        self._check_opset()
        self._check_precision()
        if self.budget is not None:
            SizeBudget.parse(self.budget)
        self._check_quality()
        check_engines(self.engines, self.target, self.verify)
        if self.cuda_graph and (TARGETS[self.target].providers[0] != CUDA or self.layout != "genai"):
            raise UserError(
                f"{option_name('cuda_graph')} needs a client that binds its inputs to fixed buffers of the device\n"
                f"  value: {option_name('target')} {self.target}, {option_name('layout')} {self.layout}\n"
                f"  Use {option_name('target')} cuda and {option_name('layout')} genai, or leave it out."
            )
        if self.provider is not None:
            on_provider(self.provider)
        if self.via == "torch" and not all(map(find_spec, ("onnxscript", "onnx_ir"))):
            raise UserError(
                f"{option_name('via')} torch needs libraries\n  Install them: pip install 'zoo[torch-export]'."
            )
        if self.via == "torch" and self.weights == "none":
            raise UserError(
                f"{option_name('via')} torch needs weights\n  Pass {option_name('weights')} random or a path."
            )
        if self.via == "torch" and not LAYOUTS[self.layout].via_torch:
            able = " or ".join(layout.name for layout in LAYOUTS.values() if layout.via_torch)
            raise UserError(
                f"{option_name('via')} torch writes only {option_name('layout')} {able}\n  value: {self.layout}\n  Use {option_name('via')} fx."
            )

    def _check_opset(self) -> None:
        if self.opset is None:
            return
        option, able = option_name("opset"), [name for name, target in TARGETS.items() if target.opsets]
        known = sorted({opset for target in TARGETS.values() for opset in target.opsets})
        if self.opset not in known:
            raise UserError(
                f"{option} must be {' or '.join(map(str, known))}, which has operations for mixers with a state\n"
                f"  value: {self.opset}\n  Leave it out for the lowest opset that each graph needs."
            )
        for name, value, fits in (
            ("target", self.target, able),
            ("layout", self.layout, [layout.name for layout in LAYOUTS.values() if layout.opsets]),
            ("via", self.via, ["fx"]),
        ):
            if value not in fits:
                raise UserError(
                    f"{option} applies only to {option_name(name)} {' or '.join(fits)}\n  value: {value}\n"
                    f"  Leave {option} out, or use {option_name(name)} {fits[0]}."
                )

    def _check_precision(self) -> None:
        if reason := TARGETS[self.target].unsupported_precisions.get(self.precision):
            others = [name for name in PRECISIONS if name not in TARGETS[self.target].unsupported_precisions]
            raise UserError(
                f"{option_name('target')} {self.target} does not support {option_name('precision')} {self.precision}\n"
                f"  {reason}\n  Use {', '.join(others[:-1])} or {others[-1]}."
            )
        if self.block_size not in BLOCK_SIZES:
            sizes = ", ".join(map(str, BLOCK_SIZES))
            raise UserError(
                f"{option_name('block_size')} must be one of {sizes}\n  value: {self.block_size}\n  Use 32, for example."
            )
        asked = {
            option_name("block_size"): self.block_size != 32,
            option_name("asymmetric"): self.asymmetric,
            option_name("head_precision"): self.head_precision != "int8",
            option_name("rounding"): self.rounding is not None,
            option_name("budget"): self.budget is not None,
        }
        four_bits = [name for name, precision in PRECISIONS.items() if precision.bits == 4]
        for option in (
            option for option, given in asked.items() if given and self.precision not in four_bits
        ):
            raise UserError(
                f"{option} applies only to {option_name('precision')} {' or '.join(four_bits)}\n  value: {self.precision}\n  Leave it out."
            )
        if self.asymmetric and not TARGETS[self.target].zero_points:
            raise UserError(
                f"{option_name('asymmetric')} gives weights zero points, which {option_name('target')} {self.target} does not support\n  Leave it out."
            )
        if self.via == "torch" and self.precision != "fp32":
            raise UserError(
                f"{option_name('via')} torch writes only fp32\n  value: {self.precision}\n  Use {option_name('via')} fx."
            )
        if self.activations is not None and self.precision != "int8":
            raise UserError(
                f"{option_name('activations')} applies only to {option_name('precision')} int8\n  value: {self.precision}\n  Leave it out."
            )
        if self.head_precision == "int4" and not _looks_up(TARGETS[self.target]):
            able = " or ".join(name for name, target in TARGETS.items() if _looks_up(target))
            raise UserError(
                f"{option_name('target')} {self.target} supports no 4-bit embedding lookup\n"
                f"  value: {option_name('head_precision')} int4\n"
                f"  Use {option_name('head_precision')} int8, or {option_name('target')} {able}."
            )

    @property
    def judges(self) -> bool:
        """Whether the cost of rounding is held to a budget: for real weights that are verified."""
        return self.verify and self.real and (PRECISIONS[self.precision].rounds or self.cache is not None)

    @property
    def cache(self) -> CacheFormat | None:
        """The format of a quantized cache; None for float."""
        return CACHE_FORMATS[self.cache_precision]

    @property
    def calibrates_cache(self) -> bool:
        """Whether the scales of a quantized cache are calibrated on representative inputs."""
        return self.real and self.cache is not None

    @property
    def calibrates(self) -> bool:
        """Whether weights are rounded for representative inputs."""
        gptq = PRECISIONS[self.precision].bits == 4 and self.rounding != "nearest"
        return self.real and (gptq or self.activations == "static")

    @property
    def real(self) -> bool:
        """Whether the weights are trained ones."""
        return self.weights not in ("random", "none")

    def _check_quality(self) -> None:
        asked = {
            option_name("calibrate"): self.calibrate,
            option_name("max_kl"): self.max_kl,
            option_name("min_cosine"): self.min_cosine,
        }
        given = [option for option, value in asked.items() if value is not None]
        if self.budget is not None and not self.real:
            raise UserError(
                f"{option_name('budget')} applies only to real weights, whose rounding error can be measured\n  value: {self.weights} weights\n"
                f"  Pass {option_name('weights')}, or leave {option_name('budget')} out."
            )
        if self.rounding == "gptq" and not self.real:
            raise UserError(
                f"{option_name('rounding')} gptq applies only to real weights\n  value: {self.weights} weights\n"
                f"  Pass {option_name('weights')}, or leave it out."
            )
        calibrates = self.calibrates or self.budget or self.calibrates_cache
        if given and not self.judges and not (given == [option_name("calibrate")] and calibrates):
            why = (
                "is not verified"
                if not self.verify
                else f"has {self.weights} weights"
                if not self.real
                else f"is {self.precision}, which rounds nothing"
            )
            raise UserError(
                f"{given[0]} applies only to real weights that are rounded and verified, but this export {why}\n  Leave it out."
            )
        if self.max_kl is not None and not 0 <= self.max_kl < math.inf:
            raise UserError(
                f"{option_name('max_kl')} must be 0 nats or more\n  value: {self.max_kl}\n  Use 0.05, for example."
            )
        if self.min_cosine is not None and not -1 <= self.min_cosine <= 1:
            raise UserError(
                f"{option_name('min_cosine')} must be from -1 to 1\n  value: {self.min_cosine}\n  Use 0.99, for example."
            )


def _looks_up(target: Target) -> bool:
    """Whether a target supports 4-bit embedding lookup."""
    return target.takes("GatherBlockQuantized", torch.float16)
