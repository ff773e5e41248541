"""The inputs on which the rounding of an export is judged, and the judgement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from exporters.graph.precisions import Precision
from exporters.preprocessing import Preprocessing
from exporters.quality.blame import blame, layer_of, role_of
from exporters.quality.budget import budget_of
from exporters.quality.examples import DECODED
from exporters.quality.generated import generated
from exporters.quality.inputs import representative
from exporters.quality.judge import Speech, cases_of, check_judgeable, judge, with_decoder_inputs
from exporters.quality.parts import NoInputsError, Representative
from exporters.quality.quality import Cost, Quality, QualityError
from exporters.quality.runners import Files, FloatModel
from exporters.runtime.text import find_text
from exporters.target.targets import Target
from specs.base.errors import UserError, reason_of
from specs.model.model import Model
from zoo.checkpoints.carried import special_tokens
from zoo.core.progress import Progress, Stage
from zoo.generation.settings import start_token
from zoo.tracing.task import Task

BLAMED = 2
"""The largest number of inputs for measuring the cost of each part: every part takes a pass over them."""

Stored = Callable[[Any], Iterable[tuple[str, Tensor]]]
"""Reads the weights of a model back from an export's data file."""


@dataclass(frozen=True)
class UserLimits:
    """The user's limits, which replace a precision's default budget."""

    max_kl: float | None = None
    min_cosine: float | None = None


@dataclass(frozen=True)
class RoundedFiles:
    """Graphs to judge, with their target and precisions, the user's limits, and the adapter that is switched on."""

    graphs: Mapping[Path, Task]
    target: Target
    precision: Precision
    limits: UserLimits
    cache: str = "float"
    adapter: str = ""
    matrices: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class QualityInputs:
    """The inputs to judge an export on, or why there are none (``unjudged``); neither where the model generates its
    own.

    ``origin`` is the place of the checkpoint's tokenizer and special tokens, and ``longest`` the number of a
    decoder's cache slots, where that is less than its context.
    """

    spec: Model
    origin: Path
    representative: Representative | None = None
    unjudged: str = ""
    longest: int | None = None

    @staticmethod
    def prepare(
        spec: Model, origin: Path, calibrate: Path | None, longest: int | None = None
    ) -> QualityInputs:
        """Read the inputs. Raises :class:`specs.base.errors.UserError` for a file that does not fit the model."""
        inputs = QualityInputs(spec, origin, longest=longest)
        try:
            check_judgeable(spec, has_reference=True)
        except UserError as error:
            return replace(inputs, unjudged=reason_of(error))
        try:
            tokenizer = find_text(origin, None, needed=calibrate is not None)
            return replace(
                inputs,
                representative=representative(
                    inputs._bounded, calibrate, tokenizer, Preprocessing.beside(origin)
                ),
            )
        except NoInputsError as error:
            if spec.architecture == "decoder" and spec.head.predicts_next:
                return inputs
            return replace(inputs, unjudged=str(error).replace("\n  ", ". "))

    @property
    def _bounded(self) -> Model:
        """The spec with a decoder limited to the available cache slots."""
        if self.longest is None or self.spec.decoder is None:
            return self.spec
        decoder = self.spec.decoder.model_copy(update={"context_length": self.longest})
        return self.spec.model_copy(update={"decoder": decoder})

    @property
    def awaits_model(self) -> bool:
        """Whether the model itself must generate the calibration inputs of its decoder."""
        return self.representative is None or self.spec.architecture == "encoder-decoder"

    def written_by(self, model: Any, progress: Progress) -> QualityInputs:
        """The same with generated inputs: everything for a decoder without inputs, and the decoder's part of an
        encoder-decoder's calibration."""
        inputs = self._with_inputs(model, progress)
        assert inputs.representative is not None
        examples = inputs.representative.calibration
        if self.spec.architecture != "encoder-decoder" or not examples or DECODED in examples[0]:
            return inputs
        progress(Stage("quality: generate the decoder's inputs"))
        said = with_decoder_inputs(self._bounded, model, examples, speech_of(self.origin))
        return replace(inputs, representative=replace(inputs.representative, calibration=said))

    def _with_inputs(self, model: Any, progress: Progress) -> QualityInputs:
        if self.representative is not None:
            return self
        progress(Stage("quality: generate the inputs to judge on"))
        return replace(
            self,
            representative=generated(self._bounded, model, special_tokens(self.origin).get("bos_token_id")),
        )

    def hold(
        self, model: Any, rounded: RoundedFiles, stored: Stored, progress: Progress
    ) -> tuple[Quality, Representative]:
        """Judge files against the float32 model, which has the same adapter.

        Raises :class:`QualityError` where they lose more than allowed, without an adapter with the most costly parts.
        """
        precision, limits = rounded.precision, rounded.limits
        speech = speech_of(self.origin)
        inputs = self._with_inputs(model, progress).representative
        assert inputs is not None
        count = len(inputs.judged)

        def tell(done: int) -> None:
            progress(Stage(f"quality: input {done + 1} of {count}"))

        files = Files.open(rounded.graphs, self.spec, rounded.target, precision, rounded.matrices)
        figures, kinds = judge(
            self._bounded, inputs.judged, files, FloatModel(model), speech, tell, inputs.kinds
        )
        budget = budget_of(figures, precision.name, limits.max_kl, limits.min_cosine, rounded.cache)
        quality = Quality(inputs.description, "PyTorch, float32", figures, budget, kinds=kinds)
        if not quality.passed:
            del files  # releases ONNX Runtime's memory
            if not rounded.adapter:
                quality = with_costs(self.spec, model, stored, inputs, quality, progress)
            raise QualityError(quality, _remedies(precision, rounded.cache), rounded.adapter)
        return quality, inputs


def speech_of(origin: Path) -> Speech:
    """The start and end tokens of an encoder-decoder's output, from its checkpoint."""
    tokens = special_tokens(origin)
    ends = tokens.get("eos_token_id")
    end_tokens = ends if isinstance(ends, list) else [ends]
    return Speech(start_token(tokens), [end for end in end_tokens if isinstance(end, int)])


def with_costs(
    spec: Model, model: Any, stored: Stored, inputs: Representative, quality: Quality, progress: Progress
) -> Quality:
    """The quality with the cost of each layer and of each role."""
    cases = list(cases_of(spec, inputs.judged[:BLAMED]))

    def costs(group_of: Callable[[str], str]) -> tuple[Cost, ...]:
        def tell(part: str) -> None:
            progress(Stage(f"quality: the cost of rounding {part}"))

        return blame(spec, model, stored(model), cases, group_of, tell)

    (every,) = costs(lambda name: "all weights")
    return replace(quality, layers=costs(layer_of), roles=costs(role_of), weights=every.cost)


def _remedies(precision: Precision, cache: str) -> str:
    """Options that lose less."""
    lossless = {"int8": "Use a float cache.", "int4": "Use an int8 cache."}.get(cache)
    weights = {
        "int4": "Use int8, or int4 with smaller blocks or with zero points (asymmetric).",
        "q4f16": "Use fp16, or q4f16 with smaller blocks or with zero points (asymmetric).",
        "int8": "Use fp16.",
        "bf16": "Use fp16 where its range is wide enough.",
        "fp16": "Use fp32.",
    }.get(precision.name)
    return " ".join(remedy for remedy in (lossless, weights) if remedy)
