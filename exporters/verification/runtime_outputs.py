"""The outputs of the written files in ONNX Runtime."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from exporters.graph.quantization.cache_scheme import stored_codes
from exporters.target.providers import device_of, present
from exporters.target.session_options import open_session, run_entries, session_options
from exporters.target.targets import Padding, Target
from exporters.verification.cases import Batch, Case
from exporters.verification.exact.bfloat16 import lifted_file
from exporters.verification.exact.graph import Constants, exact_file
from exporters.verification.probes import GraphCall
from exporters.verification.reference import ENCODED, PRESENT, at_their_places, reported_pairs, reported_state
from specs.base.errors import reason_of
from zoo import functional
from zoo.core.graph_names import (
    AHEAD,
    COORDINATES,
    COORDINATES_BESIDE_SLOTS,
    EMBEDDED,
    GRID,
    SEEN,
    VISION_ENCODER,
)
from zoo.core.state_names import is_past, is_present, past_of, present_of
from zoo.tracing.dual_encoder_tasks import READS
from zoo.tracing.task import ENCODER_HIDDEN, HIDDEN, IMAGES, Task

JUNK = 3.0
"""The value of unwritten cache slots; it must not affect any result."""


class RefusalError(Exception):
    """ONNX Runtime cannot load or run a graph."""


@contextmanager
def refusals() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # ONNX Runtime's errors have no common class
        raise RefusalError(reason_of(error)) from error


class RunnableGraph(Protocol):
    """A graph that can be run, wherever it is loaded."""

    @property
    def task(self) -> Task: ...

    def __call__(self, feeds: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return its outputs by name, given those ``feeds`` that it takes."""
        ...

    def in_place(self, feeds: Mapping[str, Tensor], buffers: Mapping[str, Any]) -> dict[str, Tensor]:
        """The outputs, with new keys and values written into ``buffers``, which also hold the past."""
        ...

    def buffers(self, cache: Mapping[str, Tensor], length: int) -> dict[str, Any]:
        """Buffers of ``length`` slots for an empty cache without a fixed length."""
        ...


@dataclass(frozen=True)
class Loaded:
    """A graph in ONNX Runtime; a ``wide`` one takes float32 instead of half floats.

    ``calls`` collects the calls to record.
    """

    session: Any
    task: Task
    wide: bool = False
    calls: list[GraphCall] | None = None

    def __call__(self, feeds: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return its outputs by name, given those ``feeds`` that it takes."""
        names = [output.name for output in self.session.get_outputs()]
        taken = self._taken(feeds)
        with refusals():
            results = self.session.run(names, taken)
        if self.calls is not None:
            self.calls.append(GraphCall(self.task.name, taken, dict(zip(names, results, strict=True))))
        return dict(zip(names, map(torch.from_numpy, results), strict=True))

    def in_place(self, feeds: Mapping[str, Tensor], buffers: Mapping[str, Any]) -> dict[str, Tensor]:
        """The outputs, with new keys and values written into ``buffers``, which also hold the past."""
        binding = self.session.io_binding()
        for name, array in self._taken(feeds).items():
            if name not in buffers:
                binding.bind_cpu_input(name, array)
        written = {present_of(name): buffer for name, buffer in buffers.items()}
        others = [output.name for output in self.session.get_outputs() if output.name not in written]
        for name in others:
            binding.bind_output(name)
        for name, buffer in buffers.items():
            binding.bind_ortvalue_input(name, buffer)
        for name, buffer in written.items():
            binding.bind_ortvalue_output(name, buffer)
        with refusals():
            self.session.run_with_iobinding(binding)
        outputs = map(torch.from_numpy, binding.copy_outputs_to_cpu())
        held = {name: torch.from_numpy(buffer.numpy()) for name, buffer in written.items()}
        return {**dict(zip(others, outputs, strict=False)), **held}

    def _taken(self, feeds: Mapping[str, Tensor]) -> dict[str, Any]:
        wanted = {given.name for given in self.task.inputs}
        return {name: self.array(tensor) for name, tensor in feeds.items() if name in wanted}

    def array(self, tensor: Tensor) -> Any:
        """A tensor as an array that the session takes."""
        wide = tensor.float() if self.wide and tensor.is_floating_point() else tensor
        return np.ascontiguousarray(wide.numpy())

    def buffers(self, cache: Mapping[str, Tensor], length: int) -> dict[str, Any]:
        """Buffers on the session's device, of ``length`` slots for an empty cache without a fixed length."""
        import onnxruntime

        device = device_of(self.session.get_providers()[0])
        return {
            name: onnxruntime.OrtValue.ortvalue_from_numpy(
                np.full(
                    (*empty.shape[:2], empty.shape[2] or length, empty.shape[3]),
                    JUNK,
                    dtype=self.array(empty).dtype,
                ),
                device,
            )
            for name, empty in cache.items()
        }


def run(
    loaded: Sequence[RunnableGraph], case: Case, per_token: frozenset[str], padding: Padding
) -> dict[str, Tensor]:
    """The outputs of the graphs, computed in pieces along the sequence where the case decodes in steps.

    The cache that one call returns is passed to the next.
    """
    feeds: dict[str, Tensor] = {}
    results: dict[str, Tensor] = {}
    if loaded[0].task.name == VISION_ENCODER:
        see, embed, *loaded = loaded
        results |= _with_images(see, embed, case)
        beside = {case.batch.name: case.batch.inputs}
        beside |= {AHEAD: results.pop(AHEAD)} if AHEAD in results else {}
        x, coordinates = results[EMBEDDED], results.pop(COORDINATES, None)
        batch = replace(case.batch, name=EMBEDDED, inputs=x, beside=beside, coordinates=coordinates)
        case = replace(case, batch=batch, encoder=None)
    elif not case.reads_encoder and case.encoder is not None:
        given = _given(case.encoder) | _given(case.batch)
        *alone, whole = loaded
        for graph in alone:
            outputs = graph(given)
            results |= {f"{READS[graph.task.name]} {name}": x for name, x in outputs.items()}
        return results | reported_pairs(whole(given))
    if case.encoder is not None:
        encode, *loaded = loaded
        outputs = encode(_given(case.encoder))
        feeds = _cache_of(outputs)
        if case.encoder.mask is not None:
            feeds["encoder_attention_mask"] = case.encoder.mask
        feeds[ENCODER_HIDDEN] = results[ENCODED] = outputs[HIDDEN]
    pieces: dict[str, list[Tensor]] = {}
    start, graph = 0, loaded[0]
    constant = graph.task.constant
    unheld = feeds.keys() | constant
    own = {k: empty for k, empty in _empty_cache(graph.task, case.batch).items() if k not in unheld}
    buffers = graph.buffers(own, case.buffer) if case.buffer else {}
    for end in case.ends:
        piece = case.batch.piece(start, end) if case.pieces else case.batch
        feeds = {**_empty_cache(graph.task, piece), **feeds, **_given(piece)}
        if piece.coordinates is not None and graph.task.cache_slots is None:
            feeds[COORDINATES] = piece.coordinates
        outputs = graph.in_place(feeds, buffers) if buffers else graph(feeds)
        cache = _cache_of(outputs)
        feeds |= cache
        for name, value in outputs.items():
            if not is_present(name):
                pieces.setdefault(name, []).append(value)
        start, graph = end, loaded[-1]
    for name, parts in pieces.items():
        if name in per_token:
            results[name] = torch.cat(parts, 1)
        elif not case.pieces:  # one vector per sequence covers all its tokens, never only the last few
            results[name] = parts[0]
    kept = {name: tensor for name, tensor in cache.items() if ".encoder." not in name}
    growing = [stored_codes(tensor) for name, tensor in kept.items() if name not in constant]
    state = reported_state(growing, [tensor for name, tensor in kept.items() if name in constant])
    if padding == "right" and growing:
        assert case.batch.mask is not None
        state[PRESENT] = at_their_places(state[PRESENT], case.batch.mask)
    return results | state


def _with_images(see: RunnableGraph, embed: RunnableGraph, case: Case) -> dict[str, Tensor]:
    """The vectors of images, where there are any, and what the decoder takes of tokens with them."""
    images, batch = case.encoder, case.batch
    assert images is not None
    seen = {SEEN: _seen(see, images, len(batch.inputs))} if len(images.inputs) else {}
    taken = next((given for given in embed.task.inputs if given.name == SEEN), None)
    if taken is not None:
        none = torch.zeros([0, *taken.dims[1:]])  # type: ignore[list-item]
        vectors = seen.get(SEEN, none)
        vectors = vectors if vectors.dim() == len(taken.dims) else vectors.flatten(0, 1)
        grids = {} if images.grids is None else {GRID: images.grids}
        return {**seen, **embed({**_given(batch), SEEN: vectors, **grids})}
    outputs = {**seen, EMBEDDED: embed(_given(batch))[EMBEDDED]}
    if seen:  # as the client does
        outputs[EMBEDDED][batch.inputs == case.placeholder] = seen[SEEN].reshape(-1, seen[SEEN].shape[-1])
    if images.grids is not None:
        assert case.placeholder is not None
        assert batch.mask is not None
        outputs[COORDINATES] = functional.image_coordinates(
            case.placeholder, batch.inputs, batch.mask, images.grids, math.isqrt(images.joined)
        )
    return outputs


def _seen(see: RunnableGraph, images: Batch, rows: int) -> Tensor:
    """The vectors of images, M V D, from a graph that takes them in order, or as many in each row."""
    if images.grids is not None:  # whose name depends on the client
        return see({images.name: images.inputs, see.task.inputs[1].name: images.grids})[SEEN]
    by_row, count = IMAGES in see.task.inputs[0].dims[1:], len(images.inputs)
    if not by_row:
        seen = see(_given(images))[SEEN]
        return seen if seen.dim() == 3 else seen.unflatten(0, (count, -1))
    pixels = images.inputs.unflatten(0, (rows if count % rows == 0 else 1, -1))
    return see({images.name: pixels})[SEEN].flatten(0, 1)


def _cache_of(outputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state among outputs, by the names of the inputs that take it."""
    return {past_of(name): tensor for name, tensor in outputs.items() if is_present(name)}


def _given(batch: Batch) -> dict[str, Tensor]:
    """A batch by the names of the graph inputs that may take it."""
    given = {
        batch.name: batch.inputs,
        "attention_mask": batch.mask,
        "token_type_ids": batch.types,
        **batch.beside,
        COORDINATES_BESIDE_SLOTS: batch.coordinates,
    }
    if batch.mask is not None and batch.types is not None:
        given["position_ids"] = _places(batch.mask)[:, -batch.inputs.shape[1] :]
    return {name: values for name, values in given.items() if values is not None}


def _places(mask: Tensor) -> Tensor:
    """Return the cache slot of each real token in a cache without gaps, and -1 for padding: B S -> B S."""
    return torch.where(mask == 1, mask.cumsum(1) - 1, -1)


def _empty_cache(task: Task, batch: Batch) -> dict[str, Tensor]:
    """Empty caches, or caches with unwritten slots, and states of zeros."""
    sizes = {"batch_size": batch.inputs.shape[0]}
    return {
        given.name: torch.full(
            [d if isinstance(d, int) else sizes.get(d, 0) for d in given.dims],
            0.0 if given.name in task.constant else JUNK,
            dtype=given.dtype,
        )
        for given in task.inputs
        if is_past(given.name)
    }


def load(path: Path, task: Task, target: Target, dtype: torch.dtype, *, packed: bool) -> Loaded:
    """A graph as a client would load it; unless ``packed``, weights are used where they are in the file.

    Raises :class:`RefusalError`.
    """
    if dtype != torch.bfloat16:
        return Loaded(session(path, target, packed=packed), task)
    with lifted_file(path) as wide:
        return Loaded(session(wide, target, packed=packed), task, wide=True)


def load_exact(
    path: Path, task: Task, target: Target, dtype: torch.dtype, unrounded: Constants, *, packed: bool
) -> Loaded:
    """The exact form of a graph, without rounding of activations or constants.

    Raises :class:`RefusalError`.
    """
    half = None if dtype == torch.float32 else dtype
    with exact_file(path, half, unrounded) as place:
        return Loaded(session(place, target, packed=packed, exact=True), task, wide=True)


def session(path: Path, target: Target, *, packed: bool = True, exact: bool = False) -> Any:
    options = session_options(path, run_entries(path, packed=packed, exact=exact))
    with refusals():
        return open_session(path, options, present(target.providers))
