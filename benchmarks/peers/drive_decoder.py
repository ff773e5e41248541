"""Prompts and steps of a decoder's graph, whoever wrote it, by ONNX Runtime alone."""

from collections.abc import Callable, Sequence

import numpy as np
import onnxruntime

from exporters.benchmark.serving import Call, Data, serve

Arrays = dict[str, np.ndarray]


def load(request: Data) -> Callable[[Data], Callable[[], Call]]:
    """A file whose inputs ``past_key_values.*`` take what its outputs ``present.*`` give."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = request["threads"]
    session = onnxruntime.InferenceSession(request["path"], options, providers=["CPUExecutionProvider"])
    states = {value.name: value.shape for value in session.get_inputs() if value.name.startswith("past")}
    outputs = [value.name for value in session.get_outputs()]

    def read(tokens: int, before: int, past: Arrays) -> Sequence[np.ndarray]:
        positions = np.arange(before, before + tokens)[None]
        mask = np.ones((1, before + tokens), np.int64)
        inputs = {"input_ids": 7 * positions % 251, "attention_mask": mask, "position_ids": positions}
        results: Sequence[np.ndarray] = session.run(outputs, {**inputs, **past})
        return results

    def prepare(work: Data) -> Callable[[], Call]:
        empty = {name: np.zeros(_begun(shape), np.float32) for name, shape in states.items()}
        if work["kind"] == "prompt":
            return lambda: lambda: read(work["lengths"][0], 0, empty)
        assert work["kind"] == "step"
        present = dict(zip(outputs, read(work["past"], 0, empty), strict=True))
        past = {name: present[name.replace("past_key_values", "present")] for name in states}
        return lambda: lambda: read(1, work["past"], past)

    return prepare


def _begun(shape: Sequence[int | str]) -> list[int]:
    """The shape of a state before any token, for one row."""
    return [1 if i == 0 else size if isinstance(size, int) else 0 for i, size in enumerate(shape)]


serve(load)
