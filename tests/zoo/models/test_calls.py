"""Calls of built models that fail name the input at fault, and those that succeed cost nothing."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import zoo
from tests.zoo.tiny import bert, clip, gpt2, t5, vit
from zoo.builder import ZooModel, assemble
from zoo.models.built_model import BuiltModel

IDS = torch.tensor([[1, 2, 3]])
IMAGE = torch.zeros(1, 3, 8, 8)
CALLS: dict[str, tuple[Callable[[], ZooModel], Callable[..., object]]] = {
    "decoder": (lambda: assemble(gpt2()), lambda model: model(IDS)),
    "generate": (lambda: assemble(gpt2()), lambda model: model.generate([[1]])),
    "encoder": (lambda: assemble(bert()), lambda model: model(IDS)),
    "images": (lambda: assemble(vit()), lambda model: model(IMAGE)),
    "encoder-decoder": (lambda: assemble(t5()), lambda model: model(IDS, IDS)),
    "encode": (lambda: assemble(t5()), lambda model: model.encode(IDS)),
    "decode": (lambda: assemble(t5()), lambda model: model.decode(IDS, ())),
    "generate from": (lambda: assemble(t5()), lambda model: model.generate([[1]])),
    "dual encoder": (lambda: assemble(clip()), lambda model: model(IDS, IMAGE)),
    "vector": (lambda: assemble(clip()), lambda model: model.vector("text", IDS)),
    "vision-language": (lambda: zoo.build("smolvlm-256m"), lambda model: model(IDS)),
    "images of it": (lambda: zoo.build("smolvlm-256m"), lambda model: model.encode_images(IMAGE)),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_model_without_weights_says_how_to_get_them(case: str) -> None:
    build, call = CALLS[case]
    model = build()
    with pytest.raises(zoo.UserError) as raised:
        call(model)
    assert str(raised.value) == (
        f'{model.spec.name} was built without weights: pass weights="random" or a checkpoint to zoo.build.'
    )
    assert raised.value.__context__ is None or raised.value.__suppress_context__


def test_shapes_are_computed_without_weights() -> None:
    assert assemble(gpt2())(IDS.to("meta")).logits.shape == (1, 3, gpt2().vocab_size)


def test_every_entry_is_explained() -> None:
    models = [BuiltModel]
    for model in models:
        models += model.__subclasses__()
    assert {"Decoder", "Encoder", "EncoderDecoder", "DualEncoder", "VisionLanguage"} <= {
        model.__name__ for model in models
    }
    for model in (model for model in models[1:] if model.__module__.startswith("zoo.")):
        own = [name for name in model.entries if name in vars(model)]
        assert own
        assert all(hasattr(vars(model)[name], "__wrapped__") for name in own)
        assert "self" in inspect.signature(model.forward).parameters


def message(call: Callable[[], object]) -> str:
    with pytest.raises(zoo.UserError) as raised:
        call()
    return str(raised.value)


@pytest.fixture(scope="module")
def decoder() -> ZooModel:
    return zoo.build(gpt2(vocab_size=50, context_length=9), weights="random")


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        (IDS + 48, "input_ids must be from 0 to below the vocab_size of gpt2, which is 50\n  value: 51\n  Use 0 to 49."),
        (IDS - 2, "input_ids must be from 0 to below the vocab_size of gpt2, which is 50\n  value: -1\n"),
        (IDS[0], "input_ids must have a row for each sequence, batch x tokens\n  value: shape 3\n  Use input_ids[None]"),
        (IDS.float(), "input_ids must be integers\n  value: torch.float32\n  Use input_ids.long()."),
        ([[1, 2]], "input_ids must be a tensor of token ids\n  value: list\n  Use torch.tensor("),
        (torch.zeros(2, 10, dtype=torch.int64), "input_ids must fit the context of gpt2, which is 9 tokens\n  value: 10 tokens\n  Use 9 or fewer, or build"),
    ],
)  # fmt: skip
def test_wrong_token_ids(decoder: ZooModel, ids: Tensor, told: str) -> None:
    assert message(lambda: decoder(ids)).startswith(told.replace("gpt2", decoder.spec.name))


def test_cached_tokens_count(decoder: ZooModel) -> None:
    past = decoder(torch.zeros(1, 8, dtype=torch.int64)).present_key_values
    assert "9 tokens\n  value: 11 tokens\n" in message(lambda: decoder(IDS, past_key_values=past))
    assert "column for each token, cached ones included: 1 x 11\n  value: shape 1 x 3\n" in message(
        lambda: decoder(IDS, torch.ones_like(IDS), past)
    )


def test_padding_does_not_count(decoder: ZooModel) -> None:
    ids = torch.zeros(1, 12, dtype=torch.int64)
    mask = (torch.arange(12) >= 4).long()[None]
    assert decoder(ids, mask).logits.shape == (1, 12, 50)
    assert "value: 10 tokens" in message(lambda: decoder(ids, (torch.arange(12) >= 2).long()[None]))


def test_inputs_are_named_as_the_call_names_them() -> None:
    encoder = zoo.build(bert(), weights="random")
    assert message(lambda: encoder(IDS + 10**6)).startswith("inputs must be from 0 to below the vocab_size")
    types = bert().embedding.segment_count
    assert (
        f"token_type_ids must be from 0 to below the token types of {bert().name}, which is {types}\n"
        in message(lambda: encoder(IDS, token_type_ids=IDS * 9))
    )
    both: Any = zoo.build(t5(), weights="random")
    assert message(lambda: both(IDS, IDS - 9)).startswith("decoder_input_ids must be from 0")
    assert message(lambda: both.encode(IDS - 9)).startswith("inputs must be from 0")


def test_images_of_another_size() -> None:
    images = zoo.build(vit(), weights="random")
    shape = " x ".join(map(str, vit().embedding.input_shape(None)))
    assert message(lambda: images(torch.zeros(1, 3, 5, 5))) == (
        f"pixel_values must be batch x {shape}\n  value: shape 1 x 3 x 5 x 5\n  Resize or pad it to this shape."
    )


def test_other_errors_are_left_alone(decoder: ZooModel) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'ids'"):
        decoder(ids=IDS)

    def fail(module: object, arguments: object) -> None:
        raise RuntimeError("a hook of a user")

    handle = decoder.decoder.register_forward_pre_hook(fail)
    try:
        with pytest.raises(RuntimeError, match="a hook of a user"):
            decoder(IDS)
    finally:
        handle.remove()


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("task_type_ids", [[3]], "task_type_ids must be from 0 to below the number of tasks, which is 3"),
        ("bbox", [[[1, 2, 3, 9]]], "bbox must be from 0 to below the number of coordinates, which is 9"),
        ("bbox", [[[4, 2, 3, 5]]], "bbox must give the left and top edge of each token before the right"),
        ("bbox", [[[1, 2, 3]]], "bbox must have a box of 4 edges for each token: "),
        ("bbox", [[[1, 2, 3, 4]] * 3], "bbox must have a box of 4 edges for each token: "),
        ("bbox", [[[0.5, 2.0, 3.0, 4.0]]], "bbox must be integers"),
        ("task_type_ids", [[1, 1, 2]] * 5, "task_type_ids must have a task for each token: "),
    ],
)
def test_inputs_beside_tokens_are_of_their_shape_and_in_range(
    name: str, values: list[Any], said: str
) -> None:
    encoder = zoo.build(bert(embedding={"tasks": 3, "boxes": 9}), weights="random")
    assert message(lambda: encoder(IDS[:, :1], **{name: torch.tensor(values)})).startswith(said)
