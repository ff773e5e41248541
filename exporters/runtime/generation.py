"""Generation: tokens are chosen one by one until every sequence has ended."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Literal, Self

import numpy as np
from onnxruntime import OrtValue

from exporters.runtime.decoding import Decoding
from exporters.runtime.embedding import CallByCall, ImageEmbedder, Images
from exporters.runtime.exported import Exported
from exporters.runtime.graph import LoadedGraph
from exporters.runtime.model_inputs import InputBatch, ModelInputs, batches, model_inputs
from specs.base.errors import UserError, option_name
from zoo.core.state_names import is_present, past_of
from zoo.generation.prompts import check_prompts, check_reads_alone
from zoo.generation.sampling import GREEDY, Sampler, Sampling
from zoo.generation.score_rules import ScoreRules
from zoo.generation.settings import stops

Ending = Literal["stop token", "max_new_tokens", "end of context"]


@dataclass(frozen=True)
class Continuation:
    """A prompt (empty for an image or audio), the generated ``ids`` (with the stop token), and the reason for the end."""

    prompt: list[int]
    ids: list[int]
    ending: Ending


@dataclass(frozen=True)
class Generation:
    """The continuations of all prompts, and the seconds until the ``first`` tokens and for the ``rest``.

    Recordings run one after another; their times are sums.
    """

    continuations: list[Continuation]
    first: float
    rest: float

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """All continuations of several generations, and the sums of their numbers."""
        _, *numbers = fields(cls)
        continuations = [continuation for part in parts for continuation in part.continuations]
        return cls(continuations, *(sum(getattr(part, number.name) for part in parts) for number in numbers))

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens per second after the first tokens; None if no more were generated."""
        later = sum(len(continuation.ids) - 1 for continuation in self.continuations)
        return later / self.rest if later else None


class Generator:
    """The graphs of an export that generates, loaded; the decoder may run ``in_turn`` with another.

    Raises :class:`specs.base.errors.UserError` if the model has no next-token scores.
    """

    def __init__(self, exported: Exported, threads: int = 0, *, in_turn: bool = False) -> None:
        spec = exported.spec
        if not spec.decodes or not spec.head.predicts_next:
            raise UserError(
                f"Generating needs a decoder with a head of kind language_modeling\n"
                f"  value: {spec.architecture}, head {spec.head.kind}\n"
                f"  Export it with {option_name('set')} head.kind=language_modeling, or run its graph with onnxruntime."
            )
        self.exported, self.spec = exported, spec
        self.encoder: LoadedGraph | None = None
        if spec.architecture == "encoder-decoder":
            encoder, *_ = exported.manifest.graphs.values()
            if not any(is_present(name) for name in encoder.outputs):
                raise UserError(
                    f"Generating with an encoder-decoder needs an encoder graph that projects keys and values.\n"
                    f"  value: {option_name('layout')} {exported.manifest.layout}\n"
                    f"  Export it with the default {option_name('layout')}, or run it with its client."
                )
            self.encoder = exported.open(0, threads)
        self.embedder = ImageEmbedder(exported, threads) if spec.architecture == "vision-language" else None
        self.decoder = exported.open(-1, threads, in_turn=in_turn)
        graphs = filter(None, (self.encoder, *(self.embedder.graphs if self.embedder else ()), self.decoder))
        self.load_seconds = sum(graph.load_seconds for graph in graphs)
        self.provider = self.decoder.provider

    def begin(
        self,
        prompts: InputBatch,
        most: int,
        start: int,
        images: Images | None = None,
        *,
        keeps_hidden: bool = False,
    ) -> tuple[Decoding, list[list[int]]]:
        """Begin sequences with room for ``most`` new tokens; return their decoding and the decoder's first tokens.

        An encoder reads the prompts once, and its decoder begins with ``start``. ``images`` take the place of placeholders in
        the prompts of a vision-language model. ``keeps_hidden`` as in :class:`exporters.runtime.decoding.Decoding`.
        """
        constant: dict[str, OrtValue] = {}
        first = [[start] for _ in prompts] if self.encoder is not None else _rows(prompts)
        if self.encoder is not None:
            inputs, mask = model_inputs(self.encoder, self.spec, self.spec.stack("encoder"), prompts)
            wanted = {past_of(name): name for name in self.encoder.outputs if is_present(name)}
            outputs = self.encoder.run(inputs, dict.fromkeys(wanted.values(), self.encoder.device))
            constant = {name: outputs[present] for name, present in wanted.items()}
            if "encoder_attention_mask" in self.decoder.inputs:
                constant["encoder_attention_mask"] = OrtValue.ortvalue_from_numpy(mask, self.decoder.device)
        check_prompts(self.spec, self.spec.stack("decoder"), first, room=1)
        room = max(map(len, first)) + most
        embed = None if self.embedder is None else CallByCall(self.embedder, images)
        facts, rows = self.exported.cache, len(prompts)
        decoding = Decoding(self.decoder, facts, rows, room, constant, embed, keeps_hidden=keeps_hidden)
        return decoding, first

    def generate(
        self,
        prompts: ModelInputs,
        most: int,
        sampling: Sampling = GREEDY,
        *,
        stop: Collection[int] | None = None,
        start: int = 0,
        images: Images | None = None,
        tell: Callable[[list[int]], None] = lambda tokens: None,
    ) -> Generation:
        """Continue prompts by at most ``most`` tokens each, under the checkpoint's generation settings.

        ``tell`` is called with the tokens of every step. A sequence ends with a token of ``stop`` (default: the settings' stop
        tokens).

        Raises :class:`specs.base.errors.UserError` for prompts that the model does not take.
        """
        check_reads_alone(self.spec)
        ends = stops(stop, self.exported.settings)
        parts = [
            self._generate(batch, most, sampling, ends, start, images, tell)
            for batch in self._batches(prompts)
        ]
        return Generation.joined(parts)

    def _generate(
        self,
        prompts: InputBatch,
        most: int,
        sampling: Sampling,
        stop: Collection[int],
        start: int,
        images: Images | None,
        tell: Callable[[list[int]], None],
    ) -> Generation:
        """Continue the prompts of one batch."""
        begun, first = time.perf_counter(), 0.0
        fitting = min(most, self.room(prompts))
        decoding, reading = self.begin(prompts, fitting, start, images)
        sampler = Sampler(sampling, len(prompts))
        generated: list[list[int]] = [[] for _ in prompts]
        stopped = [False for _ in prompts]
        read = None if isinstance(prompts, np.ndarray) else _rows(prompts)
        rules = ScoreRules(self.exported.settings, reading, read, fitting, stop)
        for _ in range(fitting):
            chosen = sampler.choose(rules.apply(decoding.read(reading), generated))
            first = first or time.perf_counter() - begun
            for row, token in enumerate(chosen):
                if not stopped[row]:
                    generated[row].append(token)
                    stopped[row] = token in stop
            tell(chosen)
            if all(stopped):
                break
            reading = [[token] for token in chosen]
        rest = time.perf_counter() - begun - first
        others: Ending = "max_new_tokens" if fitting == most else "end of context"
        endings: list[Ending] = ["stop token" if has else others for has in stopped]
        continuations = [
            Continuation(prompt, ids, ending)
            for prompt, ids, ending in zip(_rows(prompts), generated, endings, strict=True)
        ]
        return Generation(continuations, first, rest)

    def _batches(self, prompts: ModelInputs) -> Iterator[InputBatch]:
        """The batches of prompts, or one prompt at a time if the graph pads no rows and lengths differ."""
        for batch in batches(prompts):
            if self.exported.cache.padding == "none" and len(set(map(len, batch))) > 1:
                yield from ([prompt] for prompt in _rows(batch))
            else:
                yield batch

    def room(self, prompts: InputBatch) -> int:
        """The number of tokens that fit after the longest prompt, within the decoder's context and cache."""
        read = 1 if self.encoder is not None else max(map(len, _rows(prompts)))
        return max(1, self.longest - read)

    @property
    def longest(self) -> int:
        """The number of tokens that fit in the decoder's context and cache."""
        limits = self.spec.context_length_of(self.spec.stack("decoder")), self.exported.cache.length
        return min(limit or sys.maxsize for limit in limits)


def _rows(prompts: InputBatch) -> list[list[int]]:
    """The token ids of each prompt; empty for an image or audio."""
    return [[] for _ in prompts] if isinstance(prompts, np.ndarray) else [list(prompt) for prompt in prompts]
