"""Generate with onnxruntime-genai: a request on stdin, the answers on stdout."""

import json
import os
import sys
from typing import Any

import onnxruntime_genai as genai

SWIFTSHADER = "/usr/lib/chromium/vk_swiftshader_icd.json"

request = json.load(sys.stdin)
if request.get("webgpu"):
    import onnxruntime_ep_webgpu

    os.environ["ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER"] = "1"
    if os.path.exists(SWIFTSHADER) and not os.path.exists("/dev/dri"):
        os.environ.setdefault("VK_ICD_FILENAMES", SWIFTSHADER)
    genai.register_execution_provider_library(
        "WebGpuExecutionProvider", onnxruntime_ep_webgpu.get_library_path()
    )
new_tokens = request["new_tokens"]
model = genai.Model(request["directory"])
tokenizer = genai.Tokenizer(model)
adapters = genai.Adapters(model)
for name, path in request.get("adapters", {}).items():
    adapters.load(path, name)


def said(prompt: str, images: list[str]) -> dict[str, Any]:
    """The tokens of a prompt about images, or about none, and those after it."""
    processor = model.create_multimodal_processor()
    inputs = processor(prompt, images=genai.Images.open(*images) if images else None)
    length = inputs["input_ids"].as_numpy().shape[-1]
    parameters = genai.GeneratorParams(model)
    total = length + new_tokens
    parameters.set_search_options(min_length=total, max_length=total, do_sample=False)
    generator = genai.Generator(model, parameters)
    generator.set_inputs(inputs)
    while not generator.is_done():
        generator.generate_next_token()
    found = [int(token) for token in generator.get_sequence(0)]
    return {"prompt": found[:length], "tokens": found[length:]}


def generated(texts: list[str], adapter: str | None = None) -> dict[str, Any]:
    """The tokens after each text, with an adapter switched on if one is named, and the first text as the tokenizer gives it back."""
    prompts = tokenizer.encode_batch(texts).as_numpy()
    rows, length = prompts.shape
    total = length + new_tokens
    parameters = genai.GeneratorParams(model)
    parameters.set_search_options(batch_size=rows, min_length=total, max_length=total, do_sample=False)
    generator = genai.Generator(model, parameters)
    if adapter is not None:
        generator.set_active_adapter(adapters, adapter)
    generator.append_tokens(prompts)
    while not generator.is_done():
        generator.generate_next_token()
    tokens = [[int(token) for token in generator.get_sequence(row)[length:]] for row in range(rows)]
    return {"tokens": tokens, "echo": tokenizer.decode(prompts[0])}


answers = [generated(texts) for texts in request.get("batches", [])]
answers += [generated(**asked) for asked in request.get("adapted", [])]
answers += [said(**asked) for asked in request.get("asked", [])]
print(json.dumps(answers))
