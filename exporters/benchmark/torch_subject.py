"""A PyTorch model to be timed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from exporters.benchmark.workload import Workload
from exporters.graph.precisions import PRECISIONS
from exporters.runtime.tokens import padded
from specs.model.model import Model
from zoo import build
from zoo.components.mixer import State
from zoo.core.tensors import weight_bytes, weight_tensors
from zoo.tracing.task import encoder_state


class TorchSubject:
    """A model with random weights on a device, eager or compiled."""

    acceptance = None

    provider = "PyTorch"

    def __init__(self, spec: Model, precision: str, device: str, threads: int, *, compiled: bool) -> None:
        torch.set_num_threads(threads)
        self.spec = spec
        self._dtype, self._device = PRECISIONS[precision].dtype, torch.device(device)
        begun = time.perf_counter()
        self._model: Any = build(spec, weights="random", dtype=self._dtype).to(self._device)
        self.load_seconds = time.perf_counter() - begun
        self.size = weight_bytes(self._model)
        whole = self._model
        parts: list[Any] = [whole.encode, whole.decode] if spec.architecture == "encoder-decoder" else [whole]
        ready: list[Any] = [torch.compile(part) if compiled else part for part in parts]
        self._forward, (self._encode, self._decode) = ready[0], [*ready, None][:2]

    def call(self, workload: Workload) -> Callable[[], object]:
        """The function to time."""
        inputs = self._inputs(workload)
        match workload.kind:
            case "encode":
                run = lambda: self._forward(*inputs)  # noqa: E731
            case "step":
                run = self._step(workload, *inputs)
            case _:
                run = lambda: self._generate(workload.new, *inputs)  # noqa: E731

        @torch.inference_mode()
        def timed() -> object:
            result = run()
            if self._device.type == "cuda":
                torch.cuda.synchronize()
            return result

        return timed

    def _inputs(self, workload: Workload) -> list[Tensor]:
        """Token ids, images or recordings, and the mask of inputs that may have any length."""
        inputs = workload.inputs(self.spec)
        if not isinstance(inputs, np.ndarray):
            rows = padded(inputs, right=self.spec.architecture != "decoder")
            return [torch.from_numpy(array).to(self._device) for array in rows]
        values = torch.from_numpy(inputs).to(self._device, self._dtype)
        takes_mask = self.spec.embedding_of(self.spec.first_stack).takes_mask
        return [values, values.new_ones(values.shape[:2], dtype=torch.int64)] if takes_mask else [values]

    def bytes_read(self, workload: Workload) -> int | None:
        """The bytes of weights and cache that a step reads; None for calls that memory does not bound."""
        if workload.kind != "step":
            return None
        reading = nn.ModuleList([self._model.decoder, self._model.head])
        tensors = [
            tensor
            for name, tensor in weight_tensors(reading)
            if not re.search(r"\.cross_attention\.(key|value)\.", name)  # these read the encoder output
        ]
        for pair in self._cache(workload.batch, workload.past):
            tensors += pair
        if self.spec.architecture == "encoder-decoder":
            for pair in self._cache(workload.batch, max(workload.lengths), cross=True):
                tensors += pair
        return sum(tensor.nbytes for tensor in tensors)

    def _step(self, workload: Workload, ids: Tensor, mask: Tensor) -> Callable[[], object]:
        past = self._cache(workload.batch, workload.past)
        last = ids[:, -1:]
        if self.spec.architecture == "encoder-decoder":
            encoded = self._cache(workload.batch, ids.shape[1], cross=True)
            return lambda: self._decode(last, encoded, mask, past)
        whole = torch.ones(workload.batch, workload.past + 1, dtype=torch.int64, device=self._device)
        return lambda: self._forward(last, whole, past)

    def _cache(self, batch: int, length: int, *, cross: bool = False) -> list[State]:
        """The state of each layer after ``length`` tokens, or the keys and values of as many of an encoder: all ones."""
        decoder = self._model.decoder
        states = encoder_state(decoder) if cross else decoder.states
        ones = partial(torch.ones, dtype=self._dtype, device=self._device)
        return [tuple(ones(tensor.shape(batch, length)) for tensor in state) for state in states]

    def _generate(self, new: int, ids: Tensor, mask: Tensor) -> object:
        """Read a prompt and generate greedily, for the given number of tokens."""
        encoded: list[State] | None = None
        if self.spec.architecture == "encoder-decoder":
            encoded = self._encode(ids, mask).present_key_values
            ids = ids.new_zeros(len(ids), 1)
        past: list[State] | None = None
        for _ in range(new):
            if encoded is None:
                outputs = self._forward(ids, mask, past)
                mask = torch.cat([mask, mask.new_ones(len(mask), 1)], 1)
            else:
                outputs = self._decode(ids, encoded, mask, past)
            past = outputs.present_key_values
            ids = outputs["logits"][:, -1:].argmax(-1)
        return ids
