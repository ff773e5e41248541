"""The options of an export, checked against each other and against the tables of targets, layouts and precisions."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, Self

import torch
from pydantic import ValidationError, model_validator

from exporters.graph.precisions import PRECISIONS
from exporters.graph.quantization.cache_scheme import CACHE_FORMATS, CacheFormat
from exporters.layouts import LAYOUTS
from exporters.target.providers import CUDA, on_provider
from exporters.target.targets import TARGETS, Target
from exporters.verification.engines.check import check_engines
from specs.base.errors import MISSING, UserError, option_name, shorten
from specs.base.roles import changed_fields
from specs.base.suggest import suggestion
from specs.files.export_options import OptionTable, choices_of
from specs.language.document import Document
from specs.language.validation import problems


class ExportOptions(OptionTable):
    """The options of an export; :mod:`specs.files.export_options` describes each.

    ``weights`` may also be module: the weights that :func:`exporters.export.export_module` is given. Raises
    :class:`specs.base.errors.UserError` for an unknown value, and for options that exclude each other.
    """

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name, value, known in (("target", self.target, TARGETS), ("layout", self.layout, LAYOUTS)):
            if value not in known:
                raise _unknown(name, value, suggestion(value, known))
        self._check_opset()
        self._check_precision()
        if self.budget is not None:
            from exporters.rounding.size_budget import SizeBudget

            SizeBudget.parse(self.budget)
        self._check_quality()
        check_engines(self.engines, self.target, self.verify)
        if self.cuda_graph and (TARGETS[self.target].providers[0] != CUDA or self.layout != "genai"):
            raise UserError(
                f"{option_name('cuda_graph')} needs a client that binds its inputs to fixed buffers of the device\n"
                f"  value: {option_name('target')} {self.target}, {option_name('layout')} {self.layout}\n"
                f"  Use {option_name('target')} cuda and {option_name('layout')} genai, or leave it out."
            )
        if self.window_cache and self.cache is not None:
            raise UserError(
                f"{option_name('window_cache')} and {option_name('cache_precision')} are mutually exclusive\n"
                f"  value: {option_name('cache_precision')} {self.cache_precision}\n  Leave one of them out."
            )
        if self.window_cache and self.via == "torch":
            raise UserError(
                f"{option_name('window_cache')} needs zoo's own tracer\n  value: {option_name('via')} torch\n"
                f"  Pass {option_name('via')} fx, or leave it out."
            )
        if self.provider is not None:
            on_provider(self.provider)
        if self.via == "torch":
            self._check_torch()
        return self

    @model_validator(mode="wrap")
    @classmethod
    def _explain(cls, data: Any, handler: Any) -> Any:
        """Report pydantic's errors as :class:`UserError`, with the name of the option as the place."""
        try:
            return handler(data)
        except ValidationError as error:
            raise UserError("\n".join(_messages(error, dict(data)))) from None

    @classmethod
    def of(cls, **options: Any) -> Self:
        """The options with values that may be anything, such as words of a user."""
        return cls.model_validate(options)

    def changed(self, **changes: Any) -> ExportOptions:
        """The options with some changes, checked again."""
        return ExportOptions.of(**{**dict(self), **changes})

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

    def _check_torch(self) -> None:
        via = option_name("via")
        if not all(map(find_spec, ("onnxscript", "onnx_ir"))):
            raise UserError(f"{via} torch needs libraries\n  Install them: pip install 'zoo[torch-export]'.")
        if self.weights == "none":
            raise UserError(f"{via} torch needs weights\n  Pass {option_name('weights')} random or a path.")
        if not LAYOUTS[self.layout].via_torch:
            able = " or ".join(layout.name for layout in LAYOUTS.values() if layout.via_torch)
            raise UserError(
                f"{via} torch writes only {option_name('layout')} {able}\n  value: {self.layout}\n  Use {via} fx."
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
        target = TARGETS[self.target]
        if reason := target.unsupported_precisions.get(self.precision):
            others = [name for name in PRECISIONS if name not in target.unsupported_precisions]
            raise UserError(
                f"{option_name('target')} {self.target} does not support {option_name('precision')} {self.precision}\n"
                f"  {reason}\n  Use {', '.join(others[:-1])} or {others[-1]}."
            )
        four_bits = [name for name, precision in PRECISIONS.items() if precision.bits == 4]
        for name in ("block_size", "asymmetric", "head_precision", "rounding", "budget"):
            self._check_applies(name, four_bits)
        if self.asymmetric and not target.zero_points:
            raise UserError(
                f"{option_name('asymmetric')} gives weights zero points, which {option_name('target')} {self.target} does not support\n  Leave it out."
            )
        if self.via == "torch" and self.precision != "fp32":
            raise UserError(
                f"{option_name('via')} torch writes only fp32\n  value: {self.precision}\n  Use {option_name('via')} fx."
            )
        self._check_applies("activations", ["int8"])
        if self.head_precision == "int4" and not _looks_up(target):
            able = " or ".join(name for name, other in TARGETS.items() if _looks_up(other))
            raise UserError(
                f"{option_name('target')} {self.target} supports no 4-bit embedding lookup\n"
                f"  value: {option_name('head_precision')} int4\n"
                f"  Use {option_name('head_precision')} int8, or {option_name('target')} {able}."
            )

    def _check_applies(self, name: str, precisions: list[str]) -> None:
        """Raise :class:`UserError` where an option is set that only other precisions have."""
        if self.precision not in precisions and changed_fields(self, [name]):
            raise UserError(
                f"{option_name(name)} applies only to {option_name('precision')} {' or '.join(precisions)}\n"
                f"  value: {self.precision}\n  Leave it out."
            )

    def _check_quality(self) -> None:
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
        limits = [*changed_fields(self, ("calibrate", "max_kl", "min_cosine"))]
        calibrates = self.calibrates or self.budget or self.calibrates_cache
        if limits and not self.judges and not (limits == ["calibrate"] and calibrates):
            why = (
                "is not verified"
                if not self.verify
                else f"has {self.weights} weights"
                if not self.real
                else f"is {self.precision}, which rounds nothing"
            )
            raise UserError(
                f"{option_name(limits[0])} applies only to real weights that are rounded and verified, but this export {why}\n  Leave it out."
            )


def _messages(error: ValidationError, data: dict[str, Any]) -> Iterator[str]:
    """One message per wrong option: its name, the rule, the value and a remedy."""
    for problem in problems(error, Document(data), OptionTable):
        name = str(problem.path[0])
        known = name in OptionTable.model_fields
        words = [word for word in choices_of(name) if isinstance(word, str)] if known else []
        if words and isinstance(problem.value, str):
            yield _unknown(name, problem.value, suggestion(problem.value, words)).text
            continue
        value = () if problem.value is MISSING else (f"value: {shorten(problem.value)}",)
        yield "\n  ".join(filter(None, [f"{option_name(name)} {problem.rule}", *value, problem.remedy]))


def _unknown(name: str, value: object, remedy: str) -> UserError:
    return UserError(f"{option_name(name)} {value!r} is unknown\n  {remedy}")


def _looks_up(target: Target) -> bool:
    """Whether a target supports 4-bit embedding lookup."""
    return target.takes("GatherBlockQuantized", torch.float16)
