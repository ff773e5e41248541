"""Exports run through ONNX Runtime: what they generate is what PyTorch and transformers do."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from onnxruntime import OrtValue
from torch import Tensor
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LogitsProcessorList,
    T5Config,
    T5ForConditionalGeneration,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

import zoo
from exporters.runtime.decoding import Decoding
from exporters.runtime.encoding import EncoderRunner
from exporters.runtime.exported import Exported, open_export
from exporters.runtime.generation import Generator
from exporters.runtime.graph import BFLOAT16, host_array
from specs.base.errors import UserError
from specs.model.model import Model
from tests.exporters.models import written
from tests.thinned import one_in
from tests.zoo.tiny import BLOCK, bert, gpt2, t5
from zoo.configs.importing import import_spec
from zoo.generation.sampling import Sampler, Sampling, distribution
from zoo.record.records import CacheRecord

PROMPTS = [[3, 1, 4, 1, 5], [9], [2, 6, 5]]
DECISIVE = {"kind": "normal", "std": 0.5}
"""Weights that make scores differ: those of a recipe give all tokens much the same."""

LLAMA = {
    "position": {"kind": "rope"}, "context_length": 40, "d_model": 32,
    "decoder": {
        "layers": 2,
        "block": {
            **BLOCK, "norm": {"kind": "rms_norm"},
            "attention": {"kind": "grouped_query", "heads": 4, "kv_heads": 2, "window": 4},
        },
    },
}  # fmt: skip
LATENT = {
    "position": {"kind": "rope"},
    "context_length": 40,
    "decoder": {
        "layers": 2,
        "block": {
            **BLOCK,
            "attention": {"kind": "latent", "heads": 2, "head_dim": 4, "kv_rank": 6, "rope_dim": 2, "value_dim": 6},
        },
    },
}  # fmt: skip
DECODERS: dict[str, dict[str, Any]] = {
    "gpt2": {"context_length": 40, "d_model": 16},
    "windowed": LLAMA,
    "latent": LATENT,
}


def exported(spec: Model, directory: Path, **options: Any) -> Exported:
    written(spec, directory, verify=False, **options)
    return open_export(directory)


def greedy(model: Any, prompt: list[int], count: int) -> list[int]:
    """The best tokens one after another, each by a full pass of the PyTorch model."""
    ids = list(prompt)
    for _ in range(count):
        ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    return ids[len(prompt) :]


@one_in(14)
@pytest.mark.parametrize("logits", ["all", "last"])
@pytest.mark.parametrize("target", ["portable", "cpu", "tensorrt"])
@pytest.mark.parametrize("name", DECODERS)
def test_a_decoder_generates_the_tokens_of_full_pytorch_passes(
    tmp_path: Path, name: str, target: str, logits: str
) -> None:
    spec = gpt2(initialization=DECISIVE, **DECODERS[name])
    built = exported(spec, tmp_path / "out", target=target, logits=logits)
    if target == "cpu":
        assert built.cache.kind == ("growing" if name == "latent" else "shared")
    found = Generator(built).generate(PROMPTS, 12)
    model = zoo.build(spec, weights="random")
    assert [each.ids for each in found.continuations] == [greedy(model, prompt, 12) for prompt in PROMPTS]
    assert [each.prompt for each in found.continuations] == PROMPTS
    assert found.tokens_per_second is not None
    assert found.first > 0


@one_in(4)
@pytest.mark.parametrize("target", ["portable", "cpu", "tensorrt"])
def test_an_encoder_decoder_generates_the_tokens_of_full_pytorch_passes(tmp_path: Path, target: str) -> None:
    spec = t5(
        context_length=20,
        initialization={"kind": "t5", "factor": 3.0},
        head={"kind": "language_modeling", "tie_embeddings": False},
    )
    found = Generator(exported(spec, tmp_path / "out", target=target)).generate(PROMPTS, 10, start=7)
    model = zoo.build(spec, weights="random")
    for each in found.continuations:
        ids = [7]
        for _ in range(10):
            ids.append(int(model(torch.tensor([each.prompt]), torch.tensor([ids])).logits[0, -1].argmax()))
        assert each.ids == ids[1:]


@one_in(3)
@pytest.mark.parametrize("layout", ["genai", "optimum", "transformers-js"])
def test_a_decoder_runs_in_every_layout(tmp_path: Path, layout: str) -> None:
    spec = gpt2(initialization=DECISIVE, context_length=40, d_model=16)
    for name in ("onnx", layout):
        written(spec, tmp_path / name, verify=False, target="cpu", layout=name)
    plain, other = (Generator(open_export(tmp_path / name)).generate(PROMPTS, 8) for name in ("onnx", layout))
    assert other.continuations == plain.continuations


def test_an_encoder_decoder_of_another_layout_is_refused(tmp_path: Path) -> None:
    config = T5Config(vocab_size=61, d_model=24, d_kv=8, d_ff=40, num_layers=2, num_heads=3, decoder_start_token_id=0, pad_token_id=0)  # fmt: skip
    checkpoint = saved(T5ForConditionalGeneration(config), tmp_path / "checkpoint")
    built = exported(import_spec(checkpoint), tmp_path / "out", weights=str(checkpoint), layout="optimum")
    with pytest.raises(
        UserError,
        match=r"needs an encoder graph that projects keys and values\.\n  value: layout optimum\n  Export it with the default layout",
    ):
        Generator(built)


def left_padded(prompts: list[list[int]]) -> dict[str, Tensor]:
    longest = max(map(len, prompts))
    rows = [
        ([0] * (longest - len(prompt)) + prompt, [0] * (longest - len(prompt)) + [1] * len(prompt))
        for prompt in prompts
    ]
    return {
        "input_ids": torch.tensor([ids for ids, _ in rows]),
        "attention_mask": torch.tensor([mask for _, mask in rows]),
    }


def saved(reference: Any, directory: Path) -> Path:
    """A checkpoint with weights that make scores differ."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in reference.parameters():
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=generator))
    reference.eval().save_pretrained(directory)
    return directory


@pytest.mark.parametrize("prompts", [PROMPTS[:1], PROMPTS], ids=["one", "padded"])
def test_gpt2_generates_the_tokens_of_transformers(tmp_path: Path, prompts: list[list[int]]) -> None:
    config = GPT2Config(
        vocab_size=61, n_positions=64, n_embd=24, n_layer=2, n_head=3, bos_token_id=0, eos_token_id=0
    )
    reference = GPT2LMHeadModel(config)
    checkpoint = saved(reference, tmp_path / "checkpoint")
    model = exported(import_spec(checkpoint), tmp_path / "out", weights=str(checkpoint))
    found = Generator(model).generate(prompts, 20, stop=[0])
    expected = reference.generate(**left_padded(prompts), max_new_tokens=20, do_sample=False, pad_token_id=0)
    for each, row in zip(found.continuations, expected[:, max(map(len, prompts)) :].tolist(), strict=True):
        assert each.ids == row[: len(each.ids)]
        assert len(each.ids) == 20 or each.ids[-1] == 0


def test_t5_generates_the_tokens_of_transformers(tmp_path: Path) -> None:
    config = T5Config(vocab_size=61, d_model=24, d_kv=8, d_ff=40, num_layers=2, num_heads=3, decoder_start_token_id=0, pad_token_id=0, eos_token_id=1)  # fmt: skip
    reference = T5ForConditionalGeneration(config)
    checkpoint = saved(reference, tmp_path / "checkpoint")
    model = exported(import_spec(checkpoint), tmp_path / "out", weights=str(checkpoint))
    found = Generator(model).generate(PROMPTS, 20, stop=[1])
    for each in found.continuations:
        expected = reference.generate(torch.tensor([each.prompt]), max_new_tokens=20, do_sample=False)[
            0, 1:
        ].tolist()
        assert each.ids == expected


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8", "int4"])
def test_bound_buffers_give_the_outputs_of_a_plain_run(tmp_path: Path, precision: str) -> None:
    model = exported(gpt2(initialization=DECISIVE, d_model=32), tmp_path / "out", precision=precision)
    graph = model.open(-1)
    decoding = Decoding(graph, CacheRecord(), rows=2, room=8)
    bound = [decoding.read([[3, 1, 4], [9]]), decoding.read([[2], [7]]), decoding.read([[5], [5]])]
    mask = np.array([[1, 1, 1], [0, 0, 1]])
    dtype = np.float16 if precision == "fp16" else np.float32
    feeds = {name: np.zeros((2, 2, 0, 16), dtype) for name in graph.inputs if name.startswith("past")}
    names = list(graph.outputs)
    for ids, scores in zip([[[3, 1, 4], [0, 0, 9]], [[2], [7]], [[5], [5]]], bound, strict=True):
        outputs = graph.session.run(names, {**feeds, "input_ids": np.array(ids), "attention_mask": mask})
        found = dict(zip(names, outputs, strict=True))
        np.testing.assert_array_equal(scores, found["logits"][:, -1])
        feeds = {
            name.replace("present", "past_key_values"): v for name, v in found.items() if name != "logits"
        }
        mask = np.concatenate([mask, np.ones((2, 1), np.int64)], 1)


def test_a_step_that_is_not_kept_can_be_repeated(tmp_path: Path) -> None:
    graph = exported(gpt2(), tmp_path / "out").open(-1)
    decoding = Decoding(graph, CacheRecord(), rows=1, room=8)
    decoding.read([[3, 1, 4]])
    found = [decoding.read([[5]], keep=keep) for keep in (False, False, True)]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize(("element", "bits"), [(10, np.uint16), (BFLOAT16, np.uint16), (1, np.uint32)])
def test_tensors_of_every_float_type_are_read(element: int, bits: type) -> None:
    values = np.array([[1.0, -2.5], [0.0, 384.0]], np.float32)
    stored: dict[int, Any] = {
        10: values.astype(np.float16),
        BFLOAT16: (values.view(np.uint32) >> 16).astype(np.uint16),
        1: values,
    }
    value = OrtValue.ortvalue_from_numpy_with_onnx_type(stored[element].view(bits), element)
    np.testing.assert_array_equal(host_array(value), values)


# ----------------------------------------------------------------------------------------------------- endings


def test_a_stop_token_ends_its_own_sequence(tmp_path: Path) -> None:
    generator = Generator(exported(gpt2(initialization=DECISIVE, context_length=40), tmp_path / "out"))
    free = [each.ids for each in generator.generate(PROMPTS, 8).continuations]
    stop = free[0][2]
    told: list[list[int]] = []
    found = generator.generate(PROMPTS, 8, stop=[stop], tell=told.append).continuations
    for each, ids in zip(found, free, strict=True):
        end = ids.index(stop) + 1 if stop in ids else 8
        assert (each.ids, each.ending) == (ids[:end], "stop token" if stop in ids else "max_new_tokens")
    assert len(told) == max(len(each.ids) for each in found)


def test_the_end_of_the_context_ends_all(tmp_path: Path) -> None:
    generator = Generator(exported(gpt2(), tmp_path / "out"))  # of 10 tokens
    (found,) = generator.generate([[1] * 7], 64).continuations
    assert (len(found.ids), found.ending) == (3, "end of context")


@one_in(3)
@pytest.mark.parametrize("target", ["portable", "cpu", "tensorrt"])
def test_a_decoder_with_a_context_of_its_own_takes_all_of_it(target: str, tmp_path: Path) -> None:
    """GroupQueryAttention has the rotations of all its positions, and no more."""
    block = {**BLOCK, "attention": {"kind": "multi_head", "heads": 2, "head_dim": 16}}
    decoder = {"layers": 2, "block": block, "context_length": 30}
    spec = gpt2(position={"kind": "rope"}, decoder=decoder)  # of 10 tokens, says the model
    result = written(spec, tmp_path / "out", target=target)
    assert {facts["context_length"] for facts in result.graphs.values()} == {30}
    generator = Generator(open_export(tmp_path / "out"))
    (found,) = generator.generate([[1] * 7], 64).continuations
    assert (len(found.ids), found.ending) == (23, "end of context")
    with pytest.raises(UserError, match="which is 30 tokens\n  value: 30 tokens\n  Use 29 or fewer"):
        generator.generate([[1] * 30], 1)


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ([], "A prompt must have at least one token"),
        ([1, 20], "Token ids must be below the vocab_size of tiny-gpt2, which is 20\n  value: 20\n  Use 0 to 19."),
        ([-1], "  value: -1\n"),
        ([1] * 10, "A prompt and the generated tokens must fit the context of tiny-gpt2, which is 10 tokens\n  value: 10 tokens\n  Use 9 or fewer."),
    ],
)  # fmt: skip
def test_prompts_that_a_model_does_not_take(tmp_path: Path, prompt: list[int], message: str) -> None:
    generator = Generator(exported(gpt2(), tmp_path / "out"))
    with pytest.raises(UserError) as error:
        generator.generate([[1], prompt], 4)
    assert message in str(error.value)


def test_a_sequence_longer_than_the_cache_of_a_graph(tmp_path: Path) -> None:
    graph = exported(gpt2(), tmp_path / "out").open(-1)
    with pytest.raises(
        UserError, match="must fit the cache of this export, which holds 4 tokens\n  value: 5 tokens\n"
    ):
        Decoding(graph, CacheRecord(length=4), rows=1, room=5)


def test_scores_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    model = exported(gpt2(), tmp_path / "out")
    data = tmp_path / "out" / "model.onnx.data"
    data.write_bytes(b"\xff" * data.stat().st_size)  # NaN
    with pytest.raises(UserError, match="The model's scores are not finite numbers\n  Check its weights, or"):
        Generator(model).generate([[1, 2]], 4)


def test_a_decoder_without_scores_of_a_next_token_generates_nothing(tmp_path: Path) -> None:
    head = {"kind": "classification", "labels": 3, "pooling": "last"}
    with pytest.raises(
        UserError, match="a head of kind language_modeling\n  value: decoder, head classification\n"
    ):
        Generator(exported(gpt2(head=head), tmp_path / "out"))


# ---------------------------------------------------------------------------------------------------- sampling


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(temperature=0.7),
        Sampling(temperature=1.0, top_k=5),
        Sampling(temperature=1.3, top_p=0.6),
        Sampling(temperature=2.0, top_k=20, top_p=0.9),
        Sampling(temperature=1.0, top_k=1000, top_p=1.0),
    ],
)
def test_probabilities_are_those_of_transformers(sampling: Sampling) -> None:
    scores = torch.randn(1, 50, generator=torch.Generator().manual_seed(1)) * 3
    warpers = LogitsProcessorList([TemperatureLogitsWarper(sampling.temperature)])
    if sampling.top_k:
        warpers.append(TopKLogitsWarper(sampling.top_k))
    if sampling.top_p:
        warpers.append(TopPLogitsWarper(sampling.top_p))
    expected = warpers(torch.empty(1, 0), scores).softmax(-1)[0].numpy()
    kept, shares = distribution(scores[0].numpy(), sampling)
    found = np.zeros(50)
    found[kept] = shares
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_draws_follow_the_probabilities_and_the_seed() -> None:
    scores = np.log(np.array([[0.5, 0.2, 0.3]], np.float32))
    sampler, same = (
        Sampler(Sampling(temperature=1.0, seed=3), 1),
        Sampler(Sampling(temperature=1.0, seed=3), 2),
    )
    drawn = [sampler.choose(scores)[0] for _ in range(2000)]
    assert drawn[:50] == [
        same.choose(scores.repeat(2, 0))[0] for _ in range(50)
    ]  # whatever other rows there are
    counts = Counter(drawn)
    for token, share in enumerate([0.5, 0.2, 0.3]):
        assert abs(counts[token] / 2000 - share) < 0.05


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"temperature": -1.0},
            "temperature must be 0 or more, and finite\n  value: -1.0\n  Use 0 for greedy decoding",
        ),
        ({"temperature": float("nan")}, "temperature must be 0 or more, and finite\n  value: nan"),
        ({"top_k": 0}, "top_k must be 1 or more\n  value: 0\n  Leave it out to keep all tokens."),
        ({"top_p": 0.0}, "top_p must be above 0 and at most 1\n  value: 0.0\n"),
        ({"top_p": 1.5}, "top_p must be above 0 and at most 1\n  value: 1.5\n"),
        ({"seed": -1}, "seed must be 0 or more\n  value: -1\n"),
    ],
)
def test_numbers_that_mean_nothing(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as error:
        Sampling(**settings)
    assert message in str(error.value)


# ---------------------------------------------------------------------------------------------------- encoders


@pytest.mark.parametrize("target", ["portable", "cpu"])
def test_vectors_are_means_over_real_tokens(tmp_path: Path, target: str) -> None:
    spec = bert(initialization=DECISIVE)
    found = EncoderRunner(exported(spec, tmp_path / "out", target=target)).vectors(PROMPTS)
    model = zoo.build(spec, weights="random")
    expected = torch.stack(
        [model(torch.tensor([prompt])).last_hidden_state[0].mean(0) for prompt in PROMPTS]
    ).detach()
    np.testing.assert_allclose(found.values, expected.numpy(), atol=2e-5)
    cosines = torch.nn.functional.cosine_similarity(expected[:, None], expected[None], dim=-1)
    np.testing.assert_allclose(found.similarities, cosines.numpy(), atol=1e-5)


def test_vectors_are_those_of_the_head_where_it_has_one(tmp_path: Path) -> None:
    head = {"kind": "pooled", "pooling": "mean", "normalize": True, "output": "sentence_embedding"}
    found = EncoderRunner(exported(bert(head=head), tmp_path / "out")).vectors(PROMPTS)
    assert found.kind == "sentence_embedding"
    np.testing.assert_allclose(np.linalg.norm(found.values, axis=1), 1, atol=1e-5)


def test_a_single_class_has_a_probability_of_its_own(tmp_path: Path) -> None:
    spec = bert(head={"kind": "classification", "labels": 1}, initialization=DECISIVE)
    found = EncoderRunner(exported(spec, tmp_path / "out")).classes(PROMPTS)
    expected = zoo.build(spec, weights="random")(torch.tensor(PROMPTS[:1])).logits.sigmoid()
    np.testing.assert_allclose(found[:1], expected.detach().numpy(), atol=1e-5)
    assert 0 < found[0, 0] < 1


def test_classes_and_masked_tokens_are_probabilities(tmp_path: Path) -> None:
    spec = bert(head={"kind": "classification", "labels": 3}, initialization=DECISIVE)
    found = EncoderRunner(exported(spec, tmp_path / "a")).classes(PROMPTS)
    expected = zoo.build(spec, weights="random")(torch.tensor(PROMPTS[:1])).logits.softmax(-1)
    np.testing.assert_allclose(found[:1], expected.detach().numpy(), atol=1e-5)
    spec = bert(
        head={"kind": "masked_language_modeling", "norm": {"kind": "layer_norm"}}, initialization=DECISIVE
    )
    masks = EncoderRunner(exported(spec, tmp_path / "b")).masked(PROMPTS, 1)
    expected = zoo.build(spec, weights="random")(torch.tensor(PROMPTS[:1])).logits.softmax(-1)
    np.testing.assert_allclose(masks[0], expected[0, [1, 3]].detach().numpy(), atol=1e-5)
    assert [len(each) for each in masks] == [2, 0, 0]


def test_a_box_whose_edges_are_swapped_fails_in_a_graph(tmp_path: Path) -> None:
    """Its negative width would count from the end of the table."""
    spec = bert(embedding={"boxes": 9})
    graph = exported(spec, tmp_path / "out", target="portable").open(0)
    ids, mask = np.array([[3, 1]]), np.ones((1, 2), np.int64)

    def run(box: list[int]) -> None:
        boxes = np.array([[[1, 2, 3, 4], box]])
        graph.run(
            {"input_ids": ids, "attention_mask": mask, "bbox": boxes}, dict.fromkeys(graph.outputs, "cpu")
        )

    run([4, 2, 4, 2])
    for box in ([4, 2, 3, 5], [1, 5, 3, 4]):
        with pytest.raises(Exception, match="idx=9 must be within the inclusive range"):
            run(box)


def test_inputs_beside_tokens_are_zeros_of_their_shape(tmp_path: Path) -> None:
    spec = bert(embedding={"tasks": 3, "boxes": 9}, initialization=DECISIVE)
    outputs, _ = EncoderRunner(exported(spec, tmp_path / "out", target="portable")).outputs([[3, 1, 4]])
    model = zoo.build(spec, weights="random")
    ids = torch.tensor([[3, 1, 4]])
    zeros = {"task_type_ids": torch.zeros_like(ids), "bbox": torch.zeros(1, 3, 4, dtype=torch.int64)}
    for name, values in model(ids, **zeros).items():
        torch.testing.assert_close(torch.from_numpy(outputs[name]), values, atol=1e-5, rtol=1e-4)
    with pytest.raises(TypeError, match="unexpected keyword argument 'bbox'"):
        zoo.build(bert(), weights="random")(ids, bbox=zeros["bbox"])
