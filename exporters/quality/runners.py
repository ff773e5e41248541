"""Runners of a model: in PyTorch, or from the files of an export in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from exporters.graph.precisions import Precision
from exporters.quality.generated import greedy
from exporters.target.targets import Target
from exporters.verification.cases import Batch, Case
from exporters.verification.reference import full_pass, per_token_outputs
from exporters.verification.runtime_outputs import Loaded, RefusalError, load, run
from specs.base.errors import UserError
from specs.model.model import Model
from zoo.builder import assemble
from zoo.tracing.task import Task


class Runner(Protocol):
    """Runs a model on a case."""

    def outputs(self, case: Case) -> Mapping[str, Tensor]:
        """All outputs of a case by name."""
        ...

    def greedy(self, encoder: Batch, start: int, ends: Collection[int], most: int) -> list[int]:
        """The greedy output of an encoder-decoder for one input: at most ``most`` tokens, up to an end token."""
        ...


@dataclass(frozen=True)
class FloatModel:
    """A PyTorch model with float weights."""

    model: Any

    def outputs(self, case: Case) -> Mapping[str, Tensor]:
        return full_pass(self.model, case)

    def greedy(self, encoder: Batch, start: int, ends: Collection[int], most: int) -> list[int]:
        return greedy(self.model, encoder, start, ends, most)[0]


@dataclass(frozen=True)
class Files:
    """The graphs of an export; ``per_token`` names the outputs with a token axis."""

    loaded: Sequence[Loaded]
    per_token: frozenset[str]

    @staticmethod
    def open(
        graphs: Mapping[Path, Task],
        spec: Model,
        target: Target,
        precision: Precision,
        adapter: Mapping[str, Any] = MappingProxyType({}),
    ) -> Files:
        """Load graphs as a client would, perhaps with an adapter switched on.

        Raises :class:`specs.base.errors.UserError` if ONNX Runtime rejects them.
        """
        dtype = precision.dtype_on(target)
        try:
            loaded = [
                replace(load(path, task, target, dtype, packed=True), adapter=adapter)
                for path, task in graphs.items()
            ]
        except RefusalError as refusal:
            raise _refused(next(iter(graphs)).parent, refusal) from None
        return Files(loaded, per_token_outputs(assemble(spec)))

    def outputs(self, case: Case) -> Mapping[str, Tensor]:
        last_only, length = self.loaded[-1].task.last_only, case.batch.inputs.shape[1]
        if last_only and not case.pieces:  # the graph scores one token per call
            case = replace(case, pieces=(1,) * (length - _prompt(case)))
        try:
            outputs = run(self.loaded, case, self.per_token, "either")
        except RefusalError as refusal:
            raise UserError(
                f"ONNX Runtime cannot run the files: {refusal}\n"
                "  Export the model again, for a target and in a precision that this machine supports."
            ) from None

        if last_only and case.placeholder is not None:
            scores = outputs["logits"]
            outputs["logits"] = F.pad(
                scores, (0, 0, length - scores.shape[1], 0)
            )  # earlier scores are not judged
        return outputs

    def greedy(self, encoder: Batch, start: int, ends: Collection[int], most: int) -> list[int]:
        return self.greedy_near(encoder, start, ends, most, [0] * most)

    def greedy_near(
        self, encoder: Batch, start: int, ends: Collection[int], most: int, guess: Sequence[int]
    ) -> list[int]:
        """The result of ``greedy``, by Jacobi iteration (Santilli et al., 2023): all tokens of a guess are scored at once,
        repeatedly, until the guess equals the model's output.

        After n rounds the first n tokens are final, so it terminates, immediately if the guess was right.
        """
        tokens = [*guess, *([0] * (most - len(guess)))][:most]
        for _ in range(most):
            ids = torch.tensor([[start, *tokens[:-1]]])
            best = self.outputs(decoding(ids, encoder))["logits"][0].argmax(-1).tolist()
            if best == tokens:
                break
            tokens = best
        stop = next((index for index, token in enumerate(tokens) if token in ends), most - 1)
        return tokens[: stop + 1]


def _prompt(case: Case) -> int:
    """The number of tokens in the first call: up to the last image, or one."""
    if case.placeholder is None:
        return 1
    seen = (case.batch.inputs == case.placeholder).any(0).nonzero()
    return int(seen.max()) + 1 if len(seen) else 1


def decoding(ids: Tensor, encoder: Batch | None = None) -> Case:
    """The case of a decoder that reads the tokens, B T, without padding."""
    batch = Batch("input_ids", ids, torch.ones_like(ids), torch.zeros_like(ids))
    return Case("judged", batch, encoder=encoder)


def _refused(directory: Path, refusal: RefusalError) -> UserError:
    return UserError(
        f"{directory}: ONNX Runtime cannot load it: {refusal}\n"
        "  Export it again, for a target and in a precision that this machine supports."
    )
