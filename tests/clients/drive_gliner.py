"""Make a checkpoint of GLiNER, or find entities with one or with an export: the answer to a request."""

from typing import Any

import torch
from gliner import GLiNER
from gliner.config import UniEncoderSpanConfig
from gliner.model import UniEncoderSpanGLiNER
from transformers import AutoTokenizer


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The entities in texts; without an export, also the inputs of the model and its scores."""
    if "make" in request:
        model = made(request)
    else:
        model = GLiNER.from_pretrained(request["directory"], load_onnx_model=request["onnx"])
    values = {} if request.get("onnx") else scores(model, request)
    values["entities"] = model.inference(request["texts"], request["labels"], threshold=request["threshold"])
    if "beside" in request:
        other = GLiNER.from_pretrained(request["beside"]).model.state_dict()
        own = model.model.state_dict()
        same = own.keys() == other.keys() and all(torch.equal(own[name], other[name]) for name in own)
        values["same"] = same
    return values


def made(request: dict[str, Any]) -> Any:
    """A drawn model, which is saved."""
    torch.manual_seed(0)
    fields = request["make"]
    tokenizer = AutoTokenizer.from_pretrained(request["tokenizer"])
    tokenizer.add_tokens(["<<ENT>>", "<<SEP>>"], special_tokens=True)
    sizes = {"vocab_size": len(tokenizer), "class_token_index": len(tokenizer) - 2}
    encoder = {**fields.pop("encoder_config"), "vocab_size": len(tokenizer)}
    config = UniEncoderSpanConfig(model_name="none", encoder_config=encoder, **sizes, **fields)
    model = UniEncoderSpanGLiNER(config, tokenizer=tokenizer, backbone_from_pretrained=False)
    for parameter in model.model.parameters():
        torch.nn.init.normal_(parameter, 0.0, 0.25)
    model.eval()
    model.save_pretrained(request["directory"], safe_serialization=request["safetensors"])
    return model


def scores(model: Any, request: dict[str, Any]) -> dict[str, Any]:
    """The inputs of a batch of all texts, and its scores."""
    collator = model.data_collator_class(
        model.config, data_processor=model.data_processor, prepare_labels=False
    )
    tokens, _, _ = model.prepare_inputs(request["texts"])
    batch = collator(model.prepare_base_input(tokens), entity_types=request["labels"])
    names = ("input_ids", "attention_mask", "words_mask", "text_lengths", "span_idx", "span_mask")
    inputs = {name: batch[name] for name in names}
    with torch.no_grad():
        logits = model.model(**inputs).logits
    return {"inputs": {name: tensor.tolist() for name, tensor in inputs.items()}, "logits": logits.tolist()}
