"""Greedy generation by optimum.onnxruntime."""

from collections.abc import Callable

import onnxruntime
import torch
from optimum.onnxruntime import ORTModelForSeq2SeqLM

from exporters.benchmark.serving import Call, Data, serve


def load(request: Data) -> Callable[[Data], Callable[[], Call]]:
    """An encoder-decoder, with the files that it prefers."""
    torch.set_num_threads(request["threads"])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = request["threads"]
    model = ORTModelForSeq2SeqLM.from_pretrained(request["path"], session_options=options)

    def prepare(work: Data) -> Callable[[], Call]:
        assert work["kind"] == "generate"
        rows = torch.tensor(
            [[7 * index + row for index in range(n)] for row, n in enumerate(work["lengths"])]
        )
        new = work["new"]
        settings = {"do_sample": False, "num_beams": 1, "min_new_tokens": new, "max_new_tokens": new}
        tokens = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
        return lambda: lambda: model.generate(rows, **settings, **tokens)

    return prepare


serve(load)
