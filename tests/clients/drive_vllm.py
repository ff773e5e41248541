"""Generate from token ids with vLLM's backend for models of transformers: a request on stdin, the answers on stdout."""

import json
import os
import sys

os.environ |= {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
}

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # vLLM prints on stdout

from vllm import LLM, SamplingParams  # noqa: E402

request = json.load(sys.stdin)
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
answers.write(json.dumps([list(each.outputs[0].token_ids) for each in found]))
answers.flush()
