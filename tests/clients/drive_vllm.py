"""Generate from token ids with vLLM's backend for models of transformers: the answer to a request."""

import os
from typing import Any

os.environ |= {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
}

from vllm import LLM, SamplingParams


def answer(request: dict[str, Any]) -> list[list[int]]:
    """The tokens after each prompt."""
    model = LLM(
        request["directory"],
        trust_remote_code=True,
        model_impl="transformers",
        skip_tokenizer_init=True,
        dtype="float32",
        enforce_eager=True,
        max_model_len=64,
        max_num_seqs=4,
    )
    how = SamplingParams(max_tokens=request["new_tokens"], temperature=0, ignore_eos=True, detokenize=False)
    found = model.generate([{"prompt_token_ids": each} for each in request["prompts"]], how)
    return [list(each.outputs[0].token_ids) for each in found]
