"""The graph of an encoder, whoever wrote it, by ONNX Runtime alone."""

from collections.abc import Callable

import numpy as np
import onnxruntime

from exporters.benchmark.serving import Call, Data, serve


def load(request: Data) -> Callable[[Data], Callable[[], Call]]:
    """A file: its inputs are ids, masks of ones, and zeros for all else."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = request["threads"]
    session = onnxruntime.InferenceSession(request["path"], options, providers=["CPUExecutionProvider"])

    def prepare(work: Data) -> Callable[[], Call]:
        batch, length = len(work["lengths"]), work["lengths"][0]
        ids = np.tile(7 * np.arange(length), (batch, 1))
        known = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        inputs = {value.name: known.get(value.name, np.zeros_like(ids)) for value in session.get_inputs()}
        return lambda: lambda: session.run(None, inputs)

    return prepare


serve(load)
