"""The outputs of the written files in ONNX Runtime."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from torch import Tensor

from exporters.graph.quantization.cache_scheme import stored_codes
from exporters.target.mxfp4_experts import has_mxfp4_experts
from exporters.target.providers import CUDA, device_of, present
from exporters.target.session_options import open_session, run_entries, session_options
from exporters.target.targets import Padding, Target
from exporters.verification.cases import Batch, Case
from exporters.verification.exact.bfloat16 import lifted_file
from exporters.verification.exact.emulated import emulated_file
from exporters.verification.exact.graph import Constants, exact_file
from exporters.verification.layer_outputs import by_query, is_weights, with_as_many_keys
from exporters.verification.probes import GraphCall
from exporters.verification.reference import (
    OF_ENCODER,
    OF_IMAGE,
    PRESENT,
    at_their_places,
    reported_pairs,
    reported_state,
)
from specs.base.errors import reason_of
from zoo import functional
from zoo.core.graph_names import (
    COORDINATES,
    COORDINATES_BESIDE_SLOTS,
    EMBEDDED,
    GRID,
    HIDDEN,
    IMAGE_FEATURES,
    TOKENS_AHEAD,
    VISION_ENCODER,
)
from zoo.core.state_names import is_past, is_present, past_of, present_of
from zoo.tracing.dual_encoder_tasks import READS
from zoo.tracing.task import ENCODER_HIDDEN, IMAGES, Task

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
    """A loaded graph of any engine."""

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

    ``calls`` collects the calls to record; ``adapter`` are the matrices of an adapter that is switched on.
    """

    session: Any
    task: Task
    wide: bool = False
    calls: list[GraphCall] | None = None
    adapter: Mapping[str, Any] = field(default_factory=dict)

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
        wanted = {placeholder.name for placeholder in self.task.inputs}
        taken = {name: self.array(tensor) for name, tensor in feeds.items() if name in wanted}
        adapted = {value.name for value in self.session.get_overridable_initializers()} & self.adapter.keys()
        return taken | {name: self.array(torch.from_numpy(self.adapter[name])) for name in adapted}

    def array(self, tensor: Tensor) -> Any:
        """A tensor as an input array of the session."""
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
    """The outputs of the graphs by their reported names.

    A case that decodes in steps runs in pieces along the sequence, each with the cache that the last one returned.
    """
    if loaded[0].task.name == VISION_ENCODER:
        return _run_vision_language(loaded, case, per_token, padding)
    if case.encoder is None:
        return _decode(loaded, case, {}, per_token, padding)
    if case.reads_encoder:
        return _run_encoder_decoder(loaded, case, case.encoder, per_token, padding)
    return _run_dual_encoder(loaded, _feeds(case.encoder) | _feeds(case.batch))


def _run_vision_language(
    loaded: Sequence[RunnableGraph], case: Case, per_token: frozenset[str], padding: Padding
) -> dict[str, Tensor]:
    vision, embedding, *decoder = loaded
    results = _with_images(vision, embedding, case)
    beside = {case.batch.name: case.batch.inputs}
    beside |= {TOKENS_AHEAD: results.pop(TOKENS_AHEAD)} if TOKENS_AHEAD in results else {}
    coordinates = results.pop(COORDINATES, None)
    batch = replace(
        case.batch, name=EMBEDDED, inputs=results[EMBEDDED], beside=beside, coordinates=coordinates
    )
    return results | _decode(decoder, replace(case, batch=batch, encoder=None), {}, per_token, padding)


def _run_dual_encoder(loaded: Sequence[RunnableGraph], feeds: Mapping[str, Tensor]) -> dict[str, Tensor]:
    *encoders, pair = loaded
    results = dict[str, Tensor]()
    for graph in encoders:
        results |= _reported(graph(feeds), f"{READS[graph.task.name]} ")
    return results | reported_pairs(pair(feeds))


def _reported(outputs: Mapping[str, Tensor], prefix: str = "") -> dict[str, Tensor]:
    """The outputs of a graph other than its state, by their reported names."""
    return {
        f"{prefix}{name}": by_query(name, values) for name, values in outputs.items() if not is_present(name)
    }


def _run_encoder_decoder(
    loaded: Sequence[RunnableGraph], case: Case, source: Batch, per_token: frozenset[str], padding: Padding
) -> dict[str, Tensor]:
    encode, *decoder = loaded
    outputs = encode(_feeds(source))
    feeds = _cache_of(outputs)
    if source.mask is not None:
        feeds["encoder_attention_mask"] = source.mask
    feeds[ENCODER_HIDDEN] = outputs[HIDDEN]
    return _reported(outputs, OF_ENCODER) | _decode(decoder, case, feeds, per_token, padding)


def _decode(
    graphs: Sequence[RunnableGraph],
    case: Case,
    encoded: Mapping[str, Tensor],
    per_token: frozenset[str],
    padding: Padding,
) -> dict[str, Tensor]:
    """Run the first graph on the first piece and the last graph on the others; ``encoded`` are an encoder's outputs."""
    feeds, calls = {**encoded}, list[dict[str, Tensor]]()
    graph, constant = graphs[0], graphs[0].task.constant
    own = {
        name: empty
        for name, empty in _empty_cache(graph.task, case.batch, slack=True).items()
        if name not in encoded and name not in constant
    }
    buffers = graph.buffers(own, case.buffer) if case.buffer else {}
    start, cache = 0, dict[str, Tensor]()
    for end in case.ends:
        piece = case.batch.piece(start, end) if case.pieces else case.batch
        feeds = {**_empty_cache(graph.task, piece), **feeds, **_feeds(piece)}
        if piece.coordinates is not None and graph.task.cache_slots is None:
            feeds[COORDINATES] = piece.coordinates
        outputs = graph.in_place(feeds, buffers) if buffers else graph(feeds)
        cache = _cache_of(outputs)
        feeds |= cache
        calls.append(_reported(outputs))
        start, graph = end, graphs[-1]
    if graph.task.windows:
        cache = _with_windows_placed(cache, graph.task, case.batch.inputs.shape[1])
    return _joined(calls, case, per_token) | _state(cache, constant, case, padding)


def _with_windows_placed(cache: Mapping[str, Tensor], task: Task, tokens: int) -> dict[str, Tensor]:
    """The state after ``tokens`` tokens per row, with the tokens of windows at their positions, and zeros before them."""
    dims = {placeholder.name: placeholder.dims for placeholder in task.inputs if is_past(placeholder.name)}
    caches = {name: str(dims[name][2]) for name in cache if name not in task.constant}
    held = {name: task.windows[length] for name, length in caches.items() if length in task.windows}
    whole = {name: tensor for name, tensor in cache.items() if name not in held}
    width = max([tokens, *(tensor.shape[2] for name, tensor in whole.items() if name not in task.constant)])
    for name, (window, _) in held.items():
        slots = cache[name].shape[2]
        until = tokens_held(window, slots, tokens)
        recent = cache[name][:, :, max(0, until - window) : until]
        whole[name] = F.pad(recent, (0, 0, tokens - recent.shape[2], width - tokens))
    return {name: whole[name] for name in cache}


def tokens_held(window: int, slots: int, tokens: int) -> int:
    """The number of tokens that a cache with ``slots`` slots holds after ``tokens`` tokens, by the definition of GroupQueryAttention.

    A full cache drops everything before the window at once.
    """
    if tokens <= slots:
        return tokens
    dropped = slots - window + 1
    return tokens - dropped * -(-(tokens - slots) // dropped)


def _joined(
    calls: Sequence[Mapping[str, Tensor]], case: Case, per_token: frozenset[str]
) -> dict[str, Tensor]:
    """The outputs of all calls, joined along the tokens.

    An output with one vector per sequence covers all of its tokens, so it is dropped when the case decodes in pieces.
    """
    results = {}
    for name in dict.fromkeys(name for outputs in calls for name in outputs):
        parts = [outputs[name] for outputs in calls if name in outputs]
        if name in per_token:
            parts = with_as_many_keys(parts) if is_weights(name) else parts
            results[name] = torch.cat(parts, 1)
        elif not case.pieces:
            results[name] = parts[0]
    return results


def _state(
    cache: Mapping[str, Tensor], constant: frozenset[str], case: Case, padding: Padding
) -> dict[str, Tensor]:
    """The decoder's own state after the last call, by its reported names."""
    own = {name: tensor for name, tensor in cache.items() if ".encoder." not in name}
    growing = [stored_codes(tensor) for name, tensor in own.items() if name not in constant]
    state = reported_state(growing, [tensor for name, tensor in own.items() if name in constant])
    if padding != "either" and growing:
        assert case.batch.mask is not None
        state[PRESENT] = at_their_places(state[PRESENT], case.batch.mask)
    return state


def _with_images(vision: RunnableGraph, embedding: RunnableGraph, case: Case) -> dict[str, Tensor]:
    """Return the image vectors, if the case has images, and the decoder's inputs for tokens with these vectors."""
    images, batch = case.encoder, case.batch
    assert images is not None
    outputs = _seen(vision, images, len(batch.inputs)) if len(images.inputs) else {}
    seen = {name: outputs.pop(name) for name in (IMAGE_FEATURES,) if name in outputs}
    taken = next(
        (placeholder for placeholder in embedding.task.inputs if placeholder.name == IMAGE_FEATURES), None
    )
    if taken is not None:
        none = torch.zeros([0, *taken.dims[1:]])  # type: ignore[list-item]
        vectors = seen.get(IMAGE_FEATURES, none)
        vectors = vectors if vectors.dim() == len(taken.dims) else vectors.flatten(0, 1)
        grids = {} if images.grids is None else {GRID: images.grids}
        return {**outputs, **seen, **embedding({**_feeds(batch), IMAGE_FEATURES: vectors, **grids})}
    outputs |= {**seen, EMBEDDED: embedding(_feeds(batch))[EMBEDDED]}
    if seen:  # as the client does
        outputs[EMBEDDED][batch.inputs == case.placeholder] = seen[IMAGE_FEATURES].reshape(
            -1, seen[IMAGE_FEATURES].shape[-1]
        )
    if images.grids is not None:
        assert case.placeholder is not None
        assert batch.mask is not None
        outputs[COORDINATES] = functional.image_coordinates(
            case.placeholder, batch.inputs, batch.mask, images.grids, math.isqrt(images.joined)
        )
    return outputs


def _seen(vision: RunnableGraph, images: Batch, rows: int) -> dict[str, Tensor]:
    """The outputs for images, M V D and the like, of a graph that takes images in order or the same number per row."""
    if images.grids is not None:  # whose name depends on the client
        return _of_images(vision({images.name: images.inputs, vision.task.inputs[1].name: images.grids}))
    by_row, count = IMAGES in vision.task.inputs[0].dims[1:], len(images.inputs)
    if by_row:
        pixels = images.inputs.unflatten(0, (rows if count % rows == 0 else 1, -1))
        seen = vision({images.name: pixels})
        return _of_images({name: values.flatten(0, 1) for name, values in seen.items()})
    seen = vision(_feeds(images))
    if seen[IMAGE_FEATURES].dim() == 2:
        seen[IMAGE_FEATURES] = seen[IMAGE_FEATURES].unflatten(0, (count, -1))
    return _of_images(seen)


def _of_images(outputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The outputs of the image graph by their reported names."""
    others = {name: values for name, values in outputs.items() if name != IMAGE_FEATURES}
    return {IMAGE_FEATURES: outputs[IMAGE_FEATURES], **_reported(others, OF_IMAGE)}


def _cache_of(outputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state among outputs, by the names of the corresponding inputs."""
    return {past_of(name): tensor for name, tensor in outputs.items() if is_present(name)}


def _feeds(batch: Batch) -> dict[str, Tensor]:
    """A batch as feeds of all graph inputs that may take it."""
    feeds = {
        batch.name: batch.inputs,
        "attention_mask": batch.mask,
        "token_type_ids": batch.types,
        **batch.beside,
        COORDINATES_BESIDE_SLOTS: batch.coordinates,
    }
    if batch.mask is not None and batch.types is not None:
        feeds["position_ids"] = _slots(batch.mask)[:, -batch.inputs.shape[1] :]
    return {name: values for name, values in feeds.items() if values is not None}


def _slots(mask: Tensor) -> Tensor:
    """Return the cache slot of each real token in a cache without gaps, and -1 for padding: B S -> B S."""
    return torch.where(mask == 1, mask.cumsum(1) - 1, -1)


def _empty_cache(task: Task, batch: Batch, *, slack: bool = False) -> dict[str, Tensor]:
    """Empty caches, or caches of static length or of windows with unwritten slots, and states of zeros.

    Caches of windows have no slots beyond them, or with ``slack`` those that clients allocate.
    """
    sizes = {"batch_size": batch.inputs.shape[0]}
    sizes |= {name: cache.slots if slack else cache.window for name, cache in task.windows.items()}
    return {
        placeholder.name: torch.full(
            [d if isinstance(d, int) else sizes.get(d, 0) for d in placeholder.dims],
            0.0 if placeholder.name in task.constant else JUNK,
            dtype=placeholder.dtype,
        )
        for placeholder in task.inputs
        if is_past(placeholder.name)
    }


def load(path: Path, task: Task, target: Target, dtype: torch.dtype, *, packed: bool) -> Loaded:
    """Load a graph as a client would; unless ``packed``, kernels use weights in their file layout.

    Raises :class:`RefusalError`.
    """
    if emulates_experts(path, target):
        with emulated_file(path, dtype) as emulated:
            return Loaded(session(emulated, target, packed=packed), task)
    if dtype != torch.bfloat16:
        return Loaded(session(path, target, packed=packed), task)
    with lifted_file(path) as wide:
        return Loaded(session(wide, target, packed=packed), task, wide=True)


def emulates_experts(path: Path, target: Target) -> bool:
    """Whether a graph has experts of 4-bit floats that no provider on this machine reads."""
    unread = target.mxfp4_experts and CUDA not in present(target.providers)
    return unread and has_mxfp4_experts(onnx.load(path, load_external_data=False))


def load_exact(
    path: Path, task: Task, target: Target, dtype: torch.dtype, unrounded: Constants, *, packed: bool
) -> Loaded:
    """Load the exact form of a graph, without rounding of activations or constants.

    Raises :class:`RefusalError`.
    """
    half = None if dtype == torch.float32 else dtype
    with exact_file(path, half, unrounded) as exact:
        return Loaded(session(exact, target, packed=packed, exact=True), task, wide=True)


def session(path: Path, target: Target, *, packed: bool = True, exact: bool = False) -> Any:
    options = session_options(path, run_entries(path, packed=packed, exact=exact))
    with refusals():
        return open_session(path, options, present(target.providers))
