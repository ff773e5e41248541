"""Decoding in progress: each call of a decoder's graph reads some tokens and scores the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from onnxruntime import OrtValue

from exporters.runtime.cache import CACHES
from exporters.runtime.graph import Floats, Ids, LoadedGraph, host_array
from exporters.runtime.tokens import padded, token_inputs
from specs.base.errors import UserError, option_name
from specs.kinds.retrieval import TOKEN_VECTORS
from zoo.core.graph_names import COORDINATES, COORDINATES_BESIDE_SLOTS, HIDDEN, HIDDEN_STATES
from zoo.core.state_names import is_past
from zoo.record.records import CacheRecord

SCORES = "logits"

PART = 512
"""The tokens of a prompt that are read at a time, where caches hold windows alone."""


class Decoding:
    """``rows`` sequences of at most ``room`` tokens each, and their cache.

    ``constant``: the inputs that are the same in every call, such as an encoder's keys and values. ``embed`` returns the
    inputs for tokens and their mask, by name, for a graph that takes embeddings, which may give vectors of tokens in the place of
    scores. With ``keeps_hidden``, ``hidden`` are the last hidden states of the tokens of the last call, B T D.
    Raises :class:`specs.base.errors.UserError` if the graph's cache is shorter.
    """

    hidden: Floats

    def __init__(
        self,
        graph: LoadedGraph,
        facts: CacheRecord,
        rows: int,
        room: int,
        constant: Mapping[str, OrtValue] | None = None,
        embed: Callable[[Ids, Ids], Mapping[str, Floats | Ids]] | None = None,
        *,
        keeps_hidden: bool = False,
    ) -> None:
        if facts.length is not None and room > facts.length:
            raise UserError(
                f"A sequence must fit the cache of this export, which holds {facts.length} tokens\n"
                f"  value: {room} tokens\n  Shorten the prompt, generate fewer tokens, or export with a longer cache."
            )
        self.graph = graph
        self._constant = dict(constant or {})
        self._embed, self._keeps_hidden = embed, keeps_hidden
        self._output = SCORES if SCORES in graph.outputs else TOKEN_VECTORS
        self._facts, self._padded_right = facts, facts.padding == "right"
        self._mask = np.zeros((rows, 0), np.int64)  # B P
        names = [name for name in graph.inputs if is_past(name) and name not in self._constant]
        room = facts.length or room
        self.cache = CACHES[facts.kind](graph, names, rows, room, facts.constant, facts.windows)
        if facts.length is not None:  # a static cache: the graph reads all slots
            self.cache.clear()
        self._scores = self._allocated(1)
        self._binding = graph.binding()
        for name, value in self._constant.items():
            self._binding.bind_ortvalue_input(name, value)

    def read(
        self, sequences: Sequence[Sequence[int]], *, keep: bool = True, beside: Floats | None = None
    ) -> Floats:
        """Read the next tokens of each row, B lists of T (in the first call, of any lengths); return the scores of the next
        token, B V.

        ``beside``: the hidden states of another model, B T D, for a graph that reads them. Unless ``keep``, the cache stays unchanged,
        so that the next call is the same as this one.
        """
        lengths = {len(sequence) for sequence in sequences}
        if self._facts.padding == "none" and len(lengths) > 1:
            raise UserError(
                f"Prompts of a batch must have the same length in an export with {option_name('window_cache')}\n"
                f"  value: {', '.join(map(str, sorted(lengths)))} tokens\n  Read them one by one, or export without it."
            )
        if self._facts.windows and keep and len(sequences) == 1:  # skips the keys before each part's windows
            (tokens,) = sequences
            for start in range(0, len(tokens) - PART, PART):
                self._read([tokens[start : start + PART]], keep=True)
            sequences = [tokens[(len(tokens) - 1) // PART * PART :]]
        return self._read(sequences, keep=keep, beside=beside)

    def _read(
        self, sequences: Sequence[Sequence[int]], *, keep: bool, beside: Floats | None = None
    ) -> Floats:
        ids, mask = padded(sequences, right=self._padded_right)
        whole = np.concatenate([self._mask, mask], 1)
        scores = self._run(ids, whole, beside)  # B T V, or B 1 V
        last = mask.sum(1) - 1 if self._padded_right and scores.shape[1] > 1 else -1
        if keep:
            self.cache.advance(ids.shape[1])
            self._mask = whole
        return scores[np.arange(len(ids)), last].astype(np.float32)

    def score(self, ids: Sequence[int]) -> Floats:
        """The scores of the token after each of the next tokens of a single row, T V.  The cache stays unchanged until
        :meth:`keep`."""
        return self._run(np.array([ids]), np.ones((1, self.cache.past + len(ids)), np.int64))[0].astype(
            np.float32
        )

    def keep(self, count: int) -> None:
        """Add the first ``count`` tokens of the last :meth:`score` to the cache: all, unless the cache is divisible."""
        self.cache.advance(count)
        self._mask = np.ones((1, self.cache.past), np.int64)

    def rewind(self, past: int) -> int:
        """Drop the tokens of a single row after the first ``past``, or after the cache's mark if it is not divisible; return the
        number of tokens left."""
        left = self.cache.rewind(past)
        self._mask = self._mask[:, :left]
        return left

    def pretend(self, past: int) -> None:
        """Continue as if each row had read ``past`` tokens, with placeholder cache contents."""
        self.cache.fill(past)
        self._mask = np.ones((len(self._mask), past), np.int64)

    def bytes_at(self, past: int) -> int:
        """The bytes of state that a step reads after ``past`` tokens, including an encoder's keys and values."""
        sizes = (value.tensor_size_in_bytes() for name, value in self._constant.items() if is_past(name))
        return self.cache.token_bytes(past) + self.cache.state_bytes + sum(sizes)

    def _run(self, ids: Ids, mask: Ids, beside: Floats | None = None) -> Floats:
        """The scores of new tokens, B T V or B 1 V, valid until the next call."""
        binding, length = self._binding, ids.shape[1]
        inputs: dict[str, Ids | Floats] = {**token_inputs(self.graph, ids, mask)}
        if self._embed is not None:
            embedded = dict(self._embed(ids, mask[:, -length:]))
            if COORDINATES_BESIDE_SLOTS in self.graph.inputs:
                embedded[COORDINATES_BESIDE_SLOTS] = embedded.pop(COORDINATES)
            inputs |= embedded
        if beside is not None:
            inputs[HIDDEN_STATES] = beside
        for name, array in inputs.items():
            binding.bind_cpu_input(name, array)
        if self._scores.shape()[1] not in (length, self.graph.outputs[self._output].dims[1]):
            self._scores = self._allocated(length)
        binding.bind_ortvalue_output(self._output, self._scores)
        self.cache.bind(binding, length)
        if self._keeps_hidden:
            self.hidden = np.empty((*ids.shape, int(self.graph.outputs[HIDDEN].dims[-1])), np.float32)
            held = OrtValue.ortvalue_from_numpy(self.hidden)  # shares its memory
            binding.bind_ortvalue_output(HIDDEN, held)
        self.graph.session.run_with_iobinding(binding)
        return host_array(self._scores)

    def _allocated(self, length: int) -> OrtValue:
        """A buffer for the graph's scores of ``length`` tokens, or of the last token."""
        slot = self.graph.outputs[self._output]
        _, tokens, vocabulary = slot.dims
        shape = [len(self._mask), tokens if isinstance(tokens, int) else length, vocabulary]
        return OrtValue.ortvalue_from_shape_and_type(shape, slot.element, "cpu", 0)
