"""Models with their own code compute in transformers what they compute here, and need nothing of this project."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from pydantic import ValidationError

import zoo
from specs.base.errors import UserError
from specs.model.model import Model
from tests.parallel.models import MODELS
from tests.thinned import one_in
from tests.whole_specs import specs_of_seed
from tests.zoo.stored import stored
from tests.zoo.tiny import BLOCK, bert, gpt2, t5
from zoo.builder import assemble
from zoo.core.reduced import reduced_models, small_inputs
from zoo.remote_code.bindings import RemoteCodeError
from zoo.remote_code.generate import generate

IDS = torch.tensor([[1, 5, 2, 7, 19, 3], [4, 4, 0, 11, 6, 8]])
MASK = torch.tensor([[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1]])
CACHE = "cache"
"""The name of the cache among the outputs."""


def grouped(**attention: object) -> Model:
    """A decoder of a kind that no family has: rotary positions, layer norms and grouped heads."""
    block = {
        **BLOCK,
        "kind": "sandwich",
        "attention": {"kind": "grouped_query", "heads": 4, "kv_heads": 2, **attention},
    }
    return gpt2(position={"kind": "rope"}, decoder={"layers": 2, "block": block})


def both(spec: Model, directory: Path, **options: object) -> tuple[Any, Any]:
    """A model of zoo, and the same loaded by transformers."""
    weights = stored(spec, directory / "own")
    zoo.convert(spec, weights, directory / "code", remote_code=True)
    auto = transformers.AutoModelForCausalLM if spec.decoder else transformers.AutoModel
    auto = transformers.AutoModelForSeq2SeqLM if spec.decoder and spec.encoder else auto
    return zoo.build(spec, str(weights)), auto.from_pretrained(
        directory / "code", trust_remote_code=True, **options
    ).eval()


MIXTURE = {
    "kind": "mixture",
    "experts": 3,
    "top_k": 2,
    "expert": {"kind": "gated", "hidden": 8, "activation": "silu"},
    "router": {"scores": "sigmoid", "normalize": False, "weighs": "input"},
}
SPECS = {
    "learned positions": gpt2(name="rc-learned"),
    "grouped": grouped().model_copy(update={"name": "rc-grouped"}),
    "soft caps": grouped(softcap=2.0).model_copy(update={"name": "rc-caps"}),
    "windows": grouped(window=3).model_copy(update={"name": "rc-windows"}),
    "growing queries, weighted inputs": gpt2(
        name="rc-inputs",
        position={"kind": "none", "query_scaling": {"beta": 0.5, "length": 2, "offset": 1}},
        decoder={"layers": 2, "block": {**BLOCK, "feed_forward": MIXTURE}},
    ),
    "alibi": gpt2(name="rc-alibi", position={"kind": "alibi"}),
}


@one_in(2)
@pytest.mark.parametrize(
    "case", [*SPECS][:2] + [pytest.param(each, marks=pytest.mark.slow) for each in [*SPECS][2:]]
)
def test_scores_and_greedy_tokens_are_equal(case: str, tmp_path: Path) -> None:
    ours, theirs = both(SPECS[case], tmp_path)
    with torch.no_grad():
        for mask in (None, MASK):
            expected, found = ours(IDS, mask)["logits"], theirs(IDS, attention_mask=mask).logits
            real = MASK.bool() if mask is not None else torch.ones_like(MASK).bool()
            torch.testing.assert_close(found[real], expected[real], atol=1e-5, rtol=1e-5)
    check_greedy_tokens(ours, theirs, IDS[:, :4], MASK[:, :4], 6)


HYBRIDS = ["hybrid", "mamba", "mamba-heads", "mamba2", "kimi-delta", "linear-attention", "rg-lru", "short-convolution", "rwkv7"]  # fmt: skip
"""Attention after two layers of each mixer with a state of constant size, and RWKV-7, which has no attention."""


@one_in(3)
@pytest.mark.parametrize(
    "case", ["hybrid", *(pytest.param(each, marks=pytest.mark.slow) for each in HYBRIDS[1:])]
)
def test_states_of_mixers_are_kept_in_a_cache_of_the_code(case: str, tmp_path: Path) -> None:
    spec = MODELS[case].model_copy(update={"name": f"rc-{case}"})
    ours, theirs = both(spec, tmp_path)
    with torch.no_grad():
        expected, outputs = ours(IDS, MASK)["logits"], theirs(IDS, attention_mask=MASK)
    torch.testing.assert_close(outputs.logits[MASK.bool()], expected[MASK.bool()], atol=1e-5, rtol=1e-5)
    check_greedy_tokens(ours, theirs, IDS, MASK, 6)
    cache = outputs[CACHE]
    states = [{each.name for each in block.mixer.state} for block in ours.decoder.blocks if block.mixer]
    assert [{*held} for held in cache.states.values()] == states
    assert (cache.get_seq_length(), len(cache.layers)) == (6, len(ours.decoder.attentions))
    how = {"attention_mask": MASK, "max_new_tokens": 5, "do_sample": False, "num_beams": 3, "pad_token_id": 0}
    assert torch.equal(theirs.generate(IDS, **how), theirs.generate(IDS, use_cache=False, **how))


@pytest.mark.parametrize(
    "case", ["hybrid", *(pytest.param(each, marks=pytest.mark.slow) for each in (*HYBRIDS[1:], *SPECS))]
)
def test_weights_in_bfloat16_give_the_same_scores(case: str, tmp_path: Path) -> None:
    spec = {**MODELS, **SPECS}[case].model_copy(update={"name": f"rc-half-{case}"})
    ours, theirs = (each.to(torch.bfloat16) for each in both(spec, tmp_path))
    with torch.no_grad():
        expected, found = ours(IDS, MASK)["logits"], theirs(IDS, attention_mask=MASK).logits
    assert torch.equal(found[MASK.bool()], expected[MASK.bool()])


@pytest.mark.slow
def test_windows_bound_the_cache_beside_states(tmp_path: Path) -> None:
    data = MODELS["short-convolution"].model_dump(mode="json")
    data["decoder"]["block"]["attention"]["window"] = 4
    ours, theirs = both(Model.model_validate({**data, "name": "rc-window"}), tmp_path)
    check_greedy_tokens(ours, theirs, IDS, MASK, 8)
    (layer,) = theirs(IDS)[CACHE].layers
    assert layer.keys.shape[2] == 3


@pytest.mark.slow
def test_layers_of_feed_forwards_alone_keep_nothing(tmp_path: Path) -> None:
    stack = {
        "layers": [{"use": "alone"}, {}],
        "block": BLOCK,
        "blocks": {"alone": {**BLOCK, "attention": None}},
    }
    ours, theirs = both(gpt2(name="rc-alone", position={"kind": "rope"}, decoder=stack), tmp_path)
    check_greedy_tokens(ours, theirs, IDS[:, :4], MASK[:, :4], 6)
    cache = theirs(IDS)[CACHE]
    assert (len(cache.layers), cache.states, cache.get_seq_length()) == (1, {}, 6)


@pytest.mark.slow
def test_a_cache_of_states_cannot_go_back(tmp_path: Path) -> None:
    _, theirs = both(MODELS["short-convolution"].model_copy(update={"name": "rc-back"}), tmp_path)
    with pytest.raises(ValueError, match="generate without an assistant"):
        theirs(IDS)[CACHE].crop(-1)
    with pytest.raises(ValueError, match="not supported with stateful models"):
        theirs.generate(IDS, assistant_model=theirs, max_new_tokens=3)
    cache = theirs(IDS)[CACHE]
    cache.batch_repeat_interleave(2)
    assert cache.states[0]["conv"].shape[0] == 4
    cache.batch_select_indices(torch.tensor([0]))
    assert cache.states[0]["conv"].shape[0] == 1
    cache.reset()
    assert (cache.get_seq_length(), cache.states) == (0, {})


TARGETS = torch.tensor([[0, 5, 2, 7], [0, 4, 9, 11]])


@pytest.mark.slow
def test_an_encoder_decoder_answers_alike(tmp_path: Path) -> None:
    ours, theirs = both(t5(name="rc-t5"), tmp_path)
    with torch.no_grad():
        for mask in (None, MASK):
            found = theirs(IDS, attention_mask=mask, decoder_input_ids=TARGETS)
            torch.testing.assert_close(found.logits, ours(IDS, TARGETS, mask)["logits"], atol=1e-5, rtol=1e-5)
    check_greedy_answers(ours, theirs, IDS, MASK.flip(1), 6)
    cache = found[CACHE]
    assert isinstance(cache, transformers.EncoderDecoderCache)
    assert cache.cross_attention_cache.get_seq_length() == IDS.shape[1]
    how = {"attention_mask": MASK, "max_new_tokens": 5, "do_sample": False, "num_beams": 3, "pad_token_id": 0}
    assert torch.equal(theirs.generate(IDS, **how), theirs.generate(IDS, use_cache=False, **how))


def test_labels_are_the_inputs_of_a_decoder_a_token_later(tmp_path: Path) -> None:
    _, theirs = both(t5(name="rc-labels"), tmp_path)
    labels = torch.cat((TARGETS[:, 1:], torch.full((2, 1), -100)), 1)
    stated = theirs(IDS, decoder_input_ids=TARGETS, labels=labels)
    shifted = theirs(IDS, labels=labels)
    torch.testing.assert_close(shifted.loss, stated.loss)
    expected = torch.nn.functional.cross_entropy(stated.logits[:, :3].flatten(0, 1), TARGETS[:, 1:].flatten())
    torch.testing.assert_close(stated.loss, expected)


def test_a_decoder_begins_with_the_token_of_the_checkpoint(tmp_path: Path) -> None:
    spec = t5(name="rc-start")
    weights = stored(spec, tmp_path / "own")
    tokens = {"decoder_start_token_id": 3, "eos_token_id": 6, "pad_token_id": 1}
    (weights / "generation_config.json").write_text(json.dumps(tokens))
    zoo.convert(spec, weights, tmp_path / "code", remote_code=True)
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "code", trust_remote_code=True)
    assert tokens.items() <= json.loads((tmp_path / "code" / "config.json").read_text()).items()
    assert theirs.generate(IDS, max_new_tokens=2, do_sample=False)[:, 0].tolist() == [3, 3]
    assert theirs.config.decoder_start_token_id == 3


@pytest.mark.slow
def test_states_of_a_decoder_are_kept_beside_its_encoder(tmp_path: Path) -> None:
    data = t5(name="rc-both").model_dump(mode="json")
    block = data["decoder"]["block"]
    mixing = {**block, "mixer": {"kind": "short_convolution"}, "cross_attention": block["attention"]}
    data["decoder"]["block"] = mixing
    ours, theirs = both(Model.model_validate(data), tmp_path)
    check_greedy_answers(ours, theirs, IDS, MASK.flip(1), 6)
    cache = theirs(IDS, decoder_input_ids=TARGETS)[CACHE]
    assert [*cache.self_attention_cache.states[0]] == ["conv"]
    assert cache.get_seq_length() == 4


def test_an_encoder_gives_the_same_vectors(tmp_path: Path) -> None:
    ours, theirs = both(bert(name="rc-encoder"), tmp_path)
    with torch.no_grad():
        expected = ours(IDS, MASK)["last_hidden_state"]
        found = theirs(IDS, attention_mask=MASK).last_hidden_state
    torch.testing.assert_close(found[MASK.bool()], expected[MASK.bool()], atol=1e-5, rtol=1e-5)


def test_an_encoder_reads_tasks_and_boxes_beside_tokens(tmp_path: Path) -> None:
    scores = {"kind": "token_classification", "labels": 3}
    spec = bert(name="rc-boxes", embedding={"tasks": 3, "boxes": 9}, head=scores)
    ours, theirs = both(spec, tmp_path)
    model = theirs.base_model
    beside = {"task_type_ids": IDS % 3, "bbox": torch.tensor([1, 2, 5, 8]).expand(*IDS.shape, 4)}
    with torch.no_grad():
        expected = ours(IDS, MASK, **beside)["logits"]
        head = loaded(tmp_path / "code")
        for options in ({}, {"position_ids": torch.arange(IDS.shape[1])[None]}):
            found = head(IDS, attention_mask=torch.ones_like(IDS), **beside, **options).logits
            torch.testing.assert_close(found, ours(IDS, **beside)["logits"], atol=1e-5, rtol=1e-5)
        assert not torch.allclose(head(IDS, attention_mask=MASK).logits, expected)
        assert not torch.equal(model(IDS, **beside)[0], model(IDS)[0])


def test_an_answer_has_the_relevance_of_its_text_beside(tmp_path: Path) -> None:
    ours, _ = both(bert(name="rc-reader", head={"kind": "question_answering", "relevance": True}), tmp_path)
    with torch.no_grad():
        check_values(loaded(tmp_path / "code")(IDS, attention_mask=MASK), ours(IDS, MASK), MASK)


def test_the_code_imports_torch_and_transformers_alone(tmp_path: Path) -> None:
    zoo.convert(SPECS["grouped"], "random", tmp_path / "code", remote_code=True)
    for path in (tmp_path / "code").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            known = {"torch", "transformers", *sys.stdlib_module_names}
            assert {name.partition(".")[0] for name in names} <= known


@pytest.mark.slow
def test_a_saved_model_loads_again(tmp_path: Path) -> None:
    _, theirs = both(SPECS["learned positions"], tmp_path)
    theirs.save_pretrained(tmp_path / "again")
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "again", trust_remote_code=True)
    assert torch.equal(again(IDS).logits, theirs(IDS).logits)


def drawn(wanted: int, fits: Callable[[Model], bool]) -> list[Model]:
    """Random models of text that fit, of which those with a decoder score tokens: the same in every run."""
    found: list[Model] = []
    for number in range(100):
        for spec in specs_of_seed(number, 40):
            data = spec.model_dump(mode="json") | {"name": f"drawn-{len(found)}"}
            if spec.decodes:
                narrow = spec.embedding_width != spec.output_width
                data["head"] = {"kind": "language_modeling", "tie_embeddings": not narrow}
            try:
                model = Model.model_validate(data)
                if not fits(model) or not model.embedding_of(model.first_stack).takes_tokens:
                    continue
                generate(assemble(model), model, "test")
            except (ValidationError, RemoteCodeError):
                continue
            found.append(model)
            if len(found) == wanted:
                return found
    raise AssertionError(f"only {len(found)} specs were drawn")


def carries_state(spec: Model) -> bool:
    """Whether a layer has a mixer with a state of constant size."""
    return any(block.mixer is not None for _, stack in spec.stacks() for block in stack.layer_blocks())


def converted(spec: Model, directory: Path) -> tuple[Any, Any]:
    """A model of zoo, and the same in transformers by the class that its config names."""
    (directory / spec.name).mkdir()
    weights = stored(spec, directory / spec.name / "own")
    zoo.convert(spec, weights, directory / spec.name / "code", remote_code=True)
    return zoo.build(spec, str(weights)), loaded(directory / spec.name / "code")


@pytest.mark.slow
def test_an_encoder_that_scores_next_tokens(tmp_path: Path) -> None:
    ours, theirs = converted(
        zoo.load("bert-tiny", ["head={kind: language_modeling, tie_embeddings: false}"]), tmp_path
    )
    with torch.no_grad():
        check_values(theirs(IDS, attention_mask=MASK), ours(IDS, MASK), MASK)


def check_values(found: Any, expected: Any, real: torch.Tensor | None) -> None:
    """The outputs are equal within 1e-5 of the largest, at real tokens; where one overflows, so does the other."""
    for name, values in expected.items():
        at = real.bool() if real is not None and values.shape[:2] == real.shape else ...
        scale = max(1.0, float(values.abs().max()))
        torch.testing.assert_close(found[name][at], values[at], atol=1e-5 * scale, rtol=0, equal_nan=True)


@pytest.mark.slow
@pytest.mark.parametrize("stateful", [False, True], ids=["attention", "states"])
def test_fifty_drawn_specs_agree(stateful: bool, tmp_path: Path) -> None:
    for spec in drawn(
        50, lambda each: each.architecture in ("decoder", "encoder") and carries_state(each) is stateful
    ):
        ours, theirs = converted(spec, tmp_path)
        length = min(6, spec.context_length_of(spec.last_stack) or 6)
        ids, mask = IDS[:, :length] % (spec.vocab_size or 1), MASK[:, :length]
        with torch.no_grad():
            for given in (None, mask):
                check_values(theirs(ids, attention_mask=given), ours(ids, given), given)
        if spec.decodes and length > 3:
            check_greedy_tokens(ours, theirs, ids[:, :3], MASK[:, 1:4], min(5, length - 3))


@pytest.mark.slow
def test_fifty_drawn_encoder_decoders_agree(tmp_path: Path) -> None:
    for spec in drawn(50, lambda each: each.architecture == "encoder-decoder"):
        ours, theirs = converted(spec, tmp_path)
        assert spec.encoder is not None
        length = min(6, spec.context_length_of(spec.encoder) or 6)
        steps = min(6, spec.context_length_of(spec.last_stack) or 6)
        ids, targets = IDS[:, :length] % (spec.vocab_size or 1), IDS[:, :steps] % (spec.vocab_size or 1)
        right, left = MASK[:, :length].flip(1), MASK[:, :steps]
        with torch.no_grad():
            for mask, own in ((None, None), (right, None), (right, left)):
                found = theirs(
                    ids, attention_mask=mask, decoder_input_ids=targets, decoder_attention_mask=own
                )
                check_values(found, ours(ids, targets, mask, own), own)
        if steps > 1 and found.logits.isfinite().all():  # otherwise zoo refuses to sample
            check_greedy_answers(ours, theirs, ids, right, steps - 1)


def check_greedy_answers(
    ours: Any, theirs: Any, ids: torch.Tensor, mask: torch.Tensor, count: int, **how: Any
) -> None:
    """The decoder answers a batch whose rows are padded on the right with the same tokens in transformers as here."""
    told = {"attention_mask": mask, "max_new_tokens": count, "do_sample": False, "pad_token_id": 0, **how}
    inputs = [row[real.bool()].tolist() for row, real in zip(ids, mask, strict=True)]
    assert theirs.generate(ids, **told)[:, 1:].tolist() == ours.generate(inputs, count), ours.spec.name


def check_greedy_tokens(ours: Any, theirs: Any, ids: torch.Tensor, mask: torch.Tensor, count: int) -> None:
    """A padded batch goes on with the same tokens in transformers as here."""
    new = theirs.generate(ids, attention_mask=mask, max_new_tokens=count, do_sample=False, pad_token_id=0)
    prompts = [row[real.bool()].tolist() for row, real in zip(ids, mask, strict=True)]
    assert new[:, ids.shape[1] :].tolist() == ours.generate(prompts, count), ours.spec.name


def loaded(directory: Path) -> torch.nn.Module:
    """The model of a directory, by the class that its config names."""
    autos = json.loads((directory / "config.json").read_text())["auto_map"]
    return getattr(transformers, list(autos)[-1]).from_pretrained(directory, trust_remote_code=True).eval()


def inputs_of(spec: Model) -> dict[str, torch.Tensor]:
    """An input for the first stack of a model."""
    embedding = spec.embedding_of(spec.first_stack)
    if embedding.takes_tokens:
        return {embedding.input_name: IDS % (spec.vocab_size or 1)}
    length = 6 if embedding.any_length else spec.context_length_of(spec.first_stack)
    return {embedding.input_name: torch.randn(2, *embedding.input_shape(length))}


def small(preset: str) -> Model:
    """The smallest stand-in for a preset."""
    *_, (spec, _) = reduced_models(zoo.load(preset))
    return small_inputs(spec).model_copy(update={"name": f"rc-{preset.replace('.', '-')}"})


def latent(*, per_layer: bool) -> Model:
    """Latent attention with biases of distances."""
    data = MODELS["latent"].model_dump(mode="json")
    position = {"kind": "relative_bias", "per_layer": per_layer}
    return Model.model_validate({**data, "name": f"rc-latent-{per_layer}", "position": position})


WHOLE = {
    "chunks": lambda: grouped(chunk=4).model_copy(update={"name": "rc-chunks"}),
    "batch norm": lambda: gpt2(
        name="rc-batch", decoder={"layers": 2, "block": {**BLOCK, "norm": {"kind": "batch_norm"}}}
    ),
    "rotated input": lambda: gpt2(name="rc-input", position={"kind": "rope", "rotates": "input"}),
    "latent biases": lambda: latent(per_layer=False),
    "latent biases of layers": lambda: latent(per_layer=True),
}
"""Decoders with parts that no template of this project ever described."""
PRESETS = {
    "side transformers and adapters": "zamba2-1.2b",
    "AltUp, low-rank residuals and embeddings of layers": "gemma3n-e2b-text",
    "keys of other layers": "gemma4-e2b-text",
    "chunks": "llama-4-scout-17b-16e-text",
}
INPUTS = {
    "pooler": "bert-tiny",
    "patches": "vit-base-16",
    "rotated patches": "dinov3-small-16",
    "windows of patches": "beit-base-16",
    "waveform": "wavlm-base-plus",
    "frames": "w2v-bert-2.0",
    "spectrogram": "whisper-tiny",
    "sums of blocks": "long-t5-tglobal-base",
    "images described": "vit-gpt2",
    "classes of a decoder": "bart-large-mnli",
}


@pytest.mark.parametrize(
    "case",
    [
        "chunks",
        *(pytest.param(each, marks=pytest.mark.slow) for each in [*WHOLE, *PRESETS][1:]),
    ],
)
def test_every_part_of_a_decoder_is_written(case: str, tmp_path: Path) -> None:
    spec = WHOLE[case]() if case in WHOLE else small(PRESETS[case])
    ours, theirs = converted(spec, tmp_path)
    ids = IDS % (spec.vocab_size or 1)
    with torch.no_grad():
        for mask in (None, MASK):
            check_values(theirs(ids, attention_mask=mask), ours(ids, mask), mask)
    check_greedy_tokens(ours, theirs, ids[:, :4], MASK[:, :4], 6)


@pytest.mark.parametrize(
    "case", ["pooler", *(pytest.param(each, marks=pytest.mark.slow) for each in [*INPUTS][1:])]
)
def test_inputs_of_every_kind_are_read(case: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    spec = small(INPUTS[case])
    ours, theirs = converted(spec, tmp_path)
    inputs = inputs_of(spec)
    (first,) = inputs.values()
    targets = {"decoder_input_ids": TARGETS % (spec.vocab_size or 1)} if spec.decodes else {}
    with torch.no_grad():
        check_values(theirs(**inputs, **targets), ours(first, *targets.values()), None)
    if spec.head.kind == "language_modeling":
        new = theirs.generate(**inputs, max_new_tokens=4, do_sample=False, pad_token_id=0, eos_token_id=None)
        assert new[:, 1:].tolist() == ours.generate(first if first.is_floating_point() else first.tolist(), 4)


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["clip-vit-b32", "owlvit-base-32", "llava-1.5-7b", "gemma3-4b"])
def test_images_are_read_beside_texts(preset: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    spec = small(preset)
    assert spec.image is not None
    ours, theirs = converted(spec, tmp_path)
    pixels = torch.randn(2, *spec.embedding_of(spec.image).input_shape(None))
    ids = IDS % (spec.vocab_size or 1)
    if spec.connector is not None:
        width = ours.encode_images(pixels[:1]).shape[1]
        ids = torch.cat((torch.full((2, width), spec.connector.token), ids), 1)
    with torch.no_grad():
        check_values(theirs(ids, pixel_values=pixels), ours(ids, pixel_values=pixels), None)


def test_positions_of_an_encoder_may_be_given(tmp_path: Path) -> None:
    _, theirs = both(bert(name="rc-positions"), tmp_path)
    with torch.no_grad():
        expected = theirs(IDS[:, 2:]).last_hidden_state
        found = theirs(IDS[:, 2:], position_ids=torch.arange(4)[None]).last_hidden_state
        other = theirs(IDS[:, 2:], position_ids=torch.arange(2, 6)[None]).last_hidden_state
        vectors = theirs.get_input_embeddings()(IDS[:, 2:])
        embedded = theirs(inputs_embeds=vectors).last_hidden_state
    assert torch.equal(found, expected)
    assert not torch.allclose(other, expected)
    assert torch.equal(embedded, expected)


def test_the_file_is_the_same_every_time_and_holds_only_what_is_used() -> None:
    spec = SPECS["grouped"]
    (first, *_), (second, *_) = (generate(assemble(spec), spec, "test").files.values() for _ in range(2))
    assert first == second
    assert ast.get_docstring(ast.parse(first))
    for unused in (
        "BuildContext",
        "def sharding",
        "LearnedPosition",
        "class Learned",
        "class Mamba",
        "pydantic",
    ):
        assert unused not in first


def test_images_of_any_size_are_refused_by_name(tmp_path: Path) -> None:
    message = "qwen2-vl-2b: images of any size cannot be written as remote code\n  Use images of one size"
    with pytest.raises(UserError, match=message):
        zoo.convert("qwen2-vl-2b", "random", tmp_path / "out", remote_code=True)
    assert not list(tmp_path.iterdir())
