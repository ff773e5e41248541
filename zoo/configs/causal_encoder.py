"""Sentence encoders and rerankers whose body is a decoder, such as Qwen3-Embedding: the same layers, as an encoder that is
causal.

Their vectors and scores are of whole texts, so that nothing is decoded step by step, and their graph has no cache.
"""

from __future__ import annotations

from specs.model.model import Model
from zoo.families.common.template import Data


def causal_encoder(data: Data) -> Data:
    """Return the plain data of a spec with its decoder, if that is its only stack, as a causal encoder."""
    if data["architecture"] != "decoder":
        return data
    if sees_both_ways(data):
        return both_ways(data)
    renamed = {"encoder" if key == "decoder" else key: value for key, value in data.items()}
    return {**renamed, "architecture": "encoder", "encoder": {**renamed["encoder"], "causal": True}}


def sees_both_ways(data: Data) -> bool:
    """Return whether the layers of a decoder are said to see the tokens after each token too, which makes it an encoder."""
    return data.get("decoder", {}).get("causal") is False


def both_ways(data: Data) -> Data:
    """Return the plain data of a spec with such a decoder as an encoder; other data as it is."""
    if not sees_both_ways(data):
        return data
    renamed = {"encoder" if key == "decoder" else key: value for key, value in data.items()}
    stack = {key: value for key, value in renamed["encoder"].items() if key != "causal"}
    return {**renamed, "architecture": "encoder", "encoder": stack}


def as_encoder(model: Model) -> Model:
    """Return a model with its decoder, if that is its only stack, as a causal encoder."""
    if model.architecture != "decoder" or model.decoder is None:
        return model
    stack = model.decoder.model_copy(update={"causal": True})
    return model.model_copy(update={"architecture": "encoder", "encoder": stack, "decoder": None})


def as_decoder(model: Model) -> Model:
    """Return a model with its causal encoder, if that is its only stack, as a decoder."""
    if model.architecture != "encoder" or model.encoder is None or not model.is_causal("encoder"):
        return model
    stack = model.encoder.model_copy(update={"causal": None})
    return model.model_copy(update={"architecture": "decoder", "encoder": None, "decoder": stack})
