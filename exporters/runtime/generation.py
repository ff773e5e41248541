"""Generating: tokens chosen one after another, until every sequence has ended."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from onnxruntime import OrtValue

from exporters.runtime.decoding import PAST, Decoding
from exporters.runtime.exported import Exported
from exporters.runtime.graph import Graph
from exporters.runtime.tokens import padded, token_inputs
from specs.errors import UserError, option_name
from specs.head import LanguageModeling
from zoo.generation.prompts import check_prompts
from zoo.generation.sampling import GREEDY, Sampler, Sampling

Ending = Literal["stop token", "enough tokens", "end of context"]


@dataclass(frozen=True)
class Continuation:
    """A prompt, the tokens that were generated, and why there are no more: ``ids`` include the stop token."""

    prompt: list[int]
    ids: list[int]
    ending: Ending


@dataclass(frozen=True)
class Generation:
    """Continuations of all prompts, and how long they took, in seconds: up to the ``first`` tokens, and the ``rest``."""

    continuations: list[Continuation]
    first: float
    rest: float

    @property
    def tokens_per_second(self) -> float | None:
        """The rate at which tokens came after the first ones; None where there were no more."""
        later = sum(len(each.ids) - 1 for each in self.continuations)
        return later / self.rest if later else None


class Generator:
    """The graphs of an export that generates, loaded.

    Raises :class:`specs.errors.UserError` where the model has no scores of a next token.
    """

    def __init__(self, exported: Exported, threads: int = 0) -> None:
        spec = exported.spec
        if spec.architecture == "encoder" or not isinstance(spec.head, LanguageModeling):
            raise UserError(
                f"generating needs a decoder with a head of kind language_modeling\n"
                f"  value: {spec.architecture}, head {spec.head.kind}\n"
                f"  export it with {option_name('set')} head.kind=language_modeling, or run its graph with onnxruntime"
            )
        self.exported, self.spec = exported, spec
        self.encoder: Graph | None = None
        if spec.architecture == "encoder-decoder":
            if exported.manifest.layout != "onnx":
                raise UserError(
                    f"an encoder-decoder must be in the layout onnx to be run here\n"
                    f"  value: {exported.manifest.layout}\n  export it with {option_name('layout')} onnx, or run it with its client"
                )
            self.encoder = exported.open(0, threads)
        self.decoder = exported.open(-1, threads)
        graphs = filter(None, (self.encoder, self.decoder))
        self.load_seconds = sum(graph.load_seconds for graph in graphs)
        self.provider = self.decoder.provider

    def begin(
        self, prompts: Sequence[Sequence[int]], most: int, start: int
    ) -> tuple[Decoding, list[list[int]]]:
        """The sequences of some prompts, with room for ``most`` new tokens, and what their decoder is to read first.

        An encoder reads the prompts once, and its decoder begins with ``start``.
        """
        assert self.spec.decoder is not None
        given = {}
        first = [list(prompt) for prompt in prompts]
        if self.encoder is not None:
            assert self.spec.encoder is not None
            check_prompts(self.spec, self.spec.encoder, prompts)
            ids, mask = padded(prompts, right=True)
            wanted = {
                name.replace("present", PAST): name
                for name in self.encoder.outputs
                if name.startswith("present")
            }
            outputs = self.encoder.run(
                token_inputs(self.encoder, ids, mask), dict.fromkeys(wanted.values(), self.encoder.device)
            )
            given = {name: outputs[present] for name, present in wanted.items()}
            if "encoder_attention_mask" in self.decoder.inputs:
                given["encoder_attention_mask"] = OrtValue.ortvalue_from_numpy(mask, self.decoder.device)
            first = [[start]] * len(prompts)
        check_prompts(self.spec, self.spec.decoder, first, room=1)
        room = max(map(len, first)) + most
        return Decoding(self.decoder, self.exported.cache, len(prompts), room, given), first

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        most: int,
        sampling: Sampling = GREEDY,
        *,
        stop: Collection[int] = (),
        start: int = 0,
        tell: Callable[[list[int]], None] = lambda tokens: None,
    ) -> Generation:
        """Continue prompts by at most ``most`` tokens each; ``tell`` is called with the tokens of every step.

        Raises :class:`specs.errors.UserError` for prompts that the model does not take.
        """
        begun, first = time.perf_counter(), 0.0
        fitting = min(most, self._room(prompts))
        decoding, reading = self.begin(prompts, fitting, start)
        sampler = Sampler(sampling, len(prompts))
        found: list[list[int]] = [[] for _ in prompts]
        stopped = [False for _ in prompts]
        for _ in range(fitting):
            chosen = sampler.choose(decoding.read(reading))
            first = first or time.perf_counter() - begun
            for row, token in enumerate(chosen):
                if not stopped[row]:
                    found[row].append(token)
                    stopped[row] = token in stop
            tell(chosen)
            if all(stopped):
                break
            reading = [[token] for token in chosen]
        rest = time.perf_counter() - begun - first
        others: Ending = "enough tokens" if fitting == most else "end of context"
        endings: list[Ending] = ["stop token" if has else others for has in stopped]
        continuations = [
            Continuation(list(prompt), ids, ending)
            for prompt, ids, ending in zip(prompts, found, endings, strict=True)
        ]
        return Generation(continuations, first, rest)

    def _room(self, prompts: Sequence[Sequence[int]]) -> int:
        """How many tokens may follow the longest prompt within the context of the decoder, and its cache."""
        assert self.spec.decoder is not None
        limits = self.spec.context_length_of(self.spec.decoder), self.exported.cache.length
        read = 1 if self.encoder is not None else max(map(len, prompts))
        return max(1, min(limit or sys.maxsize for limit in limits) - read)
