"""The second claim about an export: that rounding keeps what the model knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from exporters.precisions import Precision
from exporters.quality.audio import LogMel
from exporters.quality.blame import blame, layer_of, role_of
from exporters.quality.budget import budget_of
from exporters.quality.examples import DECODED
from exporters.quality.generated import generated
from exporters.quality.inputs import NoInputsError, Representative, representative
from exporters.quality.judge import Speech, cases_of, check_judgeable, judge, said_by
from exporters.quality.quality import Cost, Quality, QualityError
from exporters.quality.runners import Files, FloatModel
from exporters.runtime.text import find_text
from exporters.targets import Target
from specs.errors import UserError
from specs.head import LanguageModeling
from specs.model import Model
from zoo.checkpoints.carried import special_tokens
from zoo.progress import Progress, Stage
from zoo.tracing.tasks import Task

BLAMED = 2
"""Inputs on which the cost of each part is measured: every part takes a pass over them."""

Stored = Callable[[Any], Iterable[tuple[str, Tensor]]]
"""Reads the weights of a model back from an export's data file."""


@dataclass(frozen=True)
class Limits:
    """What the user allows in the place of a precision's default budget."""

    max_kl: float | None = None
    min_cosine: float | None = None


@dataclass(frozen=True)
class Claim:
    """What is to be judged on: inputs that were read, or why a model has to do without (``unjudged``), or neither where it
    makes its own.

    ``origin`` is where the tokenizer and the special tokens of the checkpoint are, and ``longest`` how many tokens a
    decoder's cache has room for, where that is less than its context.
    """

    spec: Model
    origin: Path
    inputs: Representative | None = None
    unjudged: str = ""
    longest: int | None = None

    @staticmethod
    def prepare(spec: Model, origin: Path, calibrate: Path | None, longest: int | None = None) -> Claim:
        """Read the inputs.  Raises :class:`specs.errors.UserError` for a file that does not fit the model."""
        claim = Claim(spec, origin, longest=longest)
        try:
            check_judgeable(spec, has_reference=True)
        except UserError as error:
            return replace(claim, unjudged=str(error).splitlines()[0])
        try:
            tokenizer = find_text(origin, None, needed=calibrate is not None)
            return replace(
                claim, inputs=representative(claim._bounded, calibrate, tokenizer, LogMel.beside(origin))
            )
        except NoInputsError as error:
            if spec.architecture == "decoder" and isinstance(spec.head, LanguageModeling):
                return claim
            return replace(claim, unjudged=str(error).replace("\n  ", ". "))

    @property
    def _bounded(self) -> Model:
        """The spec with a decoder of no more tokens than there is room for."""
        if self.longest is None or self.spec.decoder is None:
            return self.spec
        decoder = self.spec.decoder.model_copy(update={"context_length": self.longest})
        return self.spec.model_copy(update={"decoder": decoder})

    @property
    def awaits_model(self) -> bool:
        """Whether the model itself has to write what its decoder reads to calibrate."""
        return self.inputs is None or self.spec.architecture == "encoder-decoder"

    def written_by(self, model: Any, progress: Progress) -> Claim:
        """The same with what the model writes itself: where no inputs were read, all that a decoder reads, and what the
        decoder of an encoder-decoder reads of the inputs that calibrate."""
        claim = self._with_inputs(model, progress)
        assert claim.inputs is not None
        examples = claim.inputs.calibration
        if self.spec.architecture != "encoder-decoder" or not examples or DECODED in examples[0]:
            return claim
        progress(Stage("quality: the model says what its decoder reads"))
        said = said_by(self._bounded, model, examples, speech_of(self.origin))
        return replace(claim, inputs=replace(claim.inputs, calibration=said))

    def _with_inputs(self, model: Any, progress: Progress) -> Claim:
        if self.inputs is not None:
            return self
        progress(Stage("quality: the model writes what it is judged on"))
        return replace(
            self, inputs=generated(self._bounded, model, special_tokens(self.origin).get("bos_token_id"))
        )

    def hold(
        self,
        model: Any,
        graphs: Mapping[Path, Task],
        target: Target,
        precision: Precision,
        limits: Limits,
        stored: Stored,
        progress: Progress,
        cache: str = "float",
    ) -> tuple[Quality, Representative]:
        """Judge graphs, with a ``cache`` of this precision, against the model in float32.

        Raises :class:`QualityError`, with the parts that cost most, where they lose more than allowed.
        """
        speech = speech_of(self.origin)
        inputs = self._with_inputs(model, progress).inputs
        assert inputs is not None
        count = len(inputs.judged)

        def tell(done: int) -> None:
            progress(Stage(f"quality: input {done + 1} of {count}"))

        files = Files.open(graphs, self.spec, target, precision)
        figures = judge(self._bounded, inputs.judged, files, FloatModel(model), speech, tell)
        budget = budget_of(figures, precision.name, limits.max_kl, limits.min_cosine, cache)
        quality = Quality(inputs.description, "PyTorch, float32", figures, budget)
        if not quality.passed:
            del files  # ONNX Runtime gives its memory back
            raise QualityError(
                with_costs(self.spec, model, stored, inputs, quality, progress), _remedies(precision, cache)
            )
        return quality, inputs


def speech_of(origin: Path) -> Speech:
    """How an encoder-decoder of a checkpoint starts and ends."""
    tokens = special_tokens(origin)
    start, ends = tokens.get("decoder_start_token_id"), tokens.get("eos_token_id")
    found = ends if isinstance(ends, list) else [ends]
    return Speech(start if isinstance(start, int) else 0, [end for end in found if isinstance(end, int)])


def with_costs(
    spec: Model, model: Any, stored: Stored, inputs: Representative, quality: Quality, progress: Progress
) -> Quality:
    """The same with the cost of each layer and of each role."""
    cases = list(cases_of(spec, inputs.judged[:BLAMED]))

    def costs(group_of: Callable[[str], str]) -> tuple[Cost, ...]:
        def tell(part: str) -> None:
            progress(Stage(f"quality: what rounding {part} costs"))

        return blame(spec, model, stored(model), cases, group_of, tell)

    (every,) = costs(lambda name: "all weights")
    return replace(quality, layers=costs(layer_of), roles=costs(role_of), weights=every.cost)


def _remedies(precision: Precision, cache: str) -> str:
    """What loses less."""
    lossless = {"int8": "a float cache loses nothing", "int4": "an int8 cache loses less"}.get(cache)
    weights = {
        "int4": "int8 loses less; so do int4 with smaller blocks, or with zero points (asymmetric)",
        "int8": "fp16 loses less",
        "bf16": "fp16 loses less where its range is wide enough",
        "fp16": "fp32 loses nothing",
    }.get(precision.name)
    return "; ".join(remedy for remedy in (lossless, weights) if remedy)
