"""Generation: tokens are chosen one by one until every sequence has ended."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal

import numpy as np
from onnxruntime import OrtValue

from exporters.preprocessing.packed import PackedImages
from exporters.runtime.decoding import Decoding
from exporters.runtime.embedding import ImageEmbedder, Images
from exporters.runtime.exported import Exported
from exporters.runtime.graph import Floats, Ids, LoadedGraph
from exporters.runtime.model_inputs import Given, InputBatch, batches, model_inputs
from specs.base.errors import UserError, option_name
from zoo.core.graph_names import COORDINATES
from zoo.core.state_names import is_present, past_of
from zoo.generation.prompts import check_prompts
from zoo.generation.sampling import GREEDY, Sampler, Sampling
from zoo.generation.score_rules import ScoreRules
from zoo.generation.settings import stops

Ending = Literal["stop token", "enough tokens", "end of context"]


@dataclass(frozen=True)
class Continuation:
    """A prompt (empty where that was an image or a sound), the generated ``ids`` (with the stop token), and the reason for the end."""

    prompt: list[int]
    ids: list[int]
    ending: Ending


@dataclass(frozen=True)
class Generation:
    """The continuations of all prompts, and the time taken, in seconds: up to the ``first`` tokens, and for the
    ``rest``; recordings run one after another, and their times are sums."""

    continuations: list[Continuation]
    first: float
    rest: float

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens per second after the first ones; None where there were no more."""
        later = sum(len(each.ids) - 1 for each in self.continuations)
        return later / self.rest if later else None


class Generator:
    """The graphs of an export that generates, loaded.

    Raises :class:`specs.base.errors.UserError` where the model has no next-token scores.
    """

    def __init__(self, exported: Exported, threads: int = 0) -> None:
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
        self.decoder = exported.open(-1, threads)
        graphs = filter(None, (self.encoder, *(self.embedder.graphs if self.embedder else ()), self.decoder))
        self.load_seconds = sum(graph.load_seconds for graph in graphs)
        self.provider = self.decoder.provider

    def begin(
        self, prompts: InputBatch, most: int, start: int, images: Images | None = None
    ) -> tuple[Decoding, list[list[int]]]:
        """Begin the sequences of some prompts, with room for ``most`` new tokens; return them and the decoder's first
        tokens.

        An encoder reads the prompts once, and its decoder begins with ``start``. ``images`` are among the tokens of a
        vision-language model, which has placeholders for them.
        """
        assert self.spec.decoder is not None
        given: dict[str, OrtValue] = {}
        first = [[start] for _ in prompts] if self.encoder is not None else _rows(prompts)
        if self.encoder is not None:
            assert self.spec.encoder is not None
            inputs, mask = model_inputs(self.encoder, self.spec, self.spec.encoder, prompts)
            wanted = {past_of(name): name for name in self.encoder.outputs if is_present(name)}
            outputs = self.encoder.run(inputs, dict.fromkeys(wanted.values(), self.encoder.device))
            given = {name: outputs[present] for name, present in wanted.items()}
            if "encoder_attention_mask" in self.decoder.inputs:
                given["encoder_attention_mask"] = OrtValue.ortvalue_from_numpy(mask, self.decoder.device)
        check_prompts(self.spec, self.spec.decoder, first, room=1)
        room = max(map(len, first)) + most
        embed = None if self.embedder is None else _CallByCall(self.embedder, images)
        return Decoding(self.decoder, self.exported.cache, len(prompts), room, given, embed), first

    def generate(
        self,
        prompts: Given,
        most: int,
        sampling: Sampling = GREEDY,
        *,
        stop: Collection[int] | None = None,
        start: int = 0,
        images: Images | None = None,
        tell: Callable[[list[int]], None] = lambda tokens: None,
    ) -> Generation:
        """Continue prompts by at most ``most`` tokens each, as the checkpoint's settings say; ``tell`` is called with the tokens of
        every step. A sequence ends with a token of ``stop`` (default: those of the settings).

        Raises :class:`specs.base.errors.UserError` for prompts that the model does not take.
        """
        ends = stops(stop, self.exported.settings)
        found = [
            self._generate(batch, most, sampling, ends, start, images, tell) for batch in batches(prompts)
        ]
        continuations = [each for one in found for each in one.continuations]
        return Generation(continuations, sum(one.first for one in found), sum(one.rest for one in found))

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
        fitting = min(most, self._room(prompts))
        decoding, reading = self.begin(prompts, fitting, start, images)
        sampler = Sampler(sampling, len(prompts))
        found: list[list[int]] = [[] for _ in prompts]
        stopped = [False for _ in prompts]
        read = None if isinstance(prompts, np.ndarray) else _rows(prompts)
        rules = ScoreRules(self.exported.settings, reading, read, fitting, stop)
        for _ in range(fitting):
            chosen = sampler.choose(rules.apply(decoding.read(reading), found))
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
            Continuation(prompt, ids, ending)
            for prompt, ids, ending in zip(_rows(prompts), found, endings, strict=True)
        ]
        return Generation(continuations, first, rest)

    def _room(self, prompts: InputBatch) -> int:
        """The number of tokens that fit after the longest prompt, within the decoder's context and cache."""
        assert self.spec.decoder is not None
        limits = self.spec.context_length_of(self.spec.decoder), self.exported.cache.length
        read = 1 if self.encoder is not None else max(map(len, _rows(prompts)))
        return max(1, min(limit or sys.maxsize for limit in limits) - read)


class _CallByCall:
    """Embeds tokens call by call: all images are among those of the first, and places of later calls follow the largest."""

    def __init__(self, embedder: ImageEmbedder, images: Images | None) -> None:
        self._embedder = embedder
        self._seen = None if images is None else embedder.see(images)
        self._grids = images.grids if isinstance(images, PackedImages) else None
        self._next: Ids | int = 0  # of each row, B 1

    def __call__(self, ids: Ids, mask: Ids) -> dict[str, Floats | Ids]:
        given = self._embedder.embed(ids, self._seen, self._grids, mask)
        self._seen = self._grids = None
        if COORDINATES in given:
            given[COORDINATES] = given[COORDINATES] + self._next
            self._next = np.where(mask == 1, given[COORDINATES].max(0), -1).max(1, keepdims=True) + 1
        return given


def _rows(prompts: InputBatch) -> list[list[int]]:
    """The token ids of each prompt; none of an image or a sound."""
    return [[] for _ in prompts] if isinstance(prompts, np.ndarray) else [list(prompt) for prompt in prompts]
