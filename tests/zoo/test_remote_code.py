"""Models with their own code compute in transformers what they compute here, and need nothing of this project."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from pydantic import ValidationError

import zoo
from specs.errors import UserError
from specs.model import Model
from tests.parallel.models import MODELS
from tests.whole_specs import specs_of_seed
from tests.zoo.stored import stored
from tests.zoo.tiny import BLOCK, bert, gpt2, t5
from zoo.builder import assemble
from zoo.remote_code.collected import RemoteCodeError
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


def test_windows_bound_the_cache_beside_states(tmp_path: Path) -> None:
    data = MODELS["short-convolution"].model_dump(mode="json")
    data["decoder"]["block"]["attention"]["window"] = 4
    ours, theirs = both(Model.model_validate({**data, "name": "rc-window"}), tmp_path)
    check_greedy_tokens(ours, theirs, IDS, MASK, 8)
    (layer,) = theirs(IDS)[CACHE].layers
    assert layer.keys.shape[2] == 3


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


def test_an_encoder_gives_the_same_vectors(tmp_path: Path) -> None:
    ours, theirs = both(bert(name="rc-encoder"), tmp_path)
    with torch.no_grad():
        expected = ours(IDS, MASK)["last_hidden_state"]
        found = theirs(IDS, attention_mask=MASK).last_hidden_state
    torch.testing.assert_close(found[MASK.bool()], expected[MASK.bool()], atol=1e-5, rtol=1e-5)


def test_the_code_imports_torch_and_transformers_alone(tmp_path: Path) -> None:
    zoo.convert(SPECS["grouped"], "random", tmp_path / "code", remote_code=True)
    for path in (tmp_path / "code").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            known = {
                "torch",
                "transformers",
                "math",
                "functools",
                "operator",
                "dataclasses",
                "typing",
                "__future__",
            }
            assert {name.partition(".")[0] for name in names} <= known


@pytest.mark.slow
def test_a_saved_model_loads_again(tmp_path: Path) -> None:
    _, theirs = both(SPECS["learned positions"], tmp_path)
    theirs.save_pretrained(tmp_path / "again")
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "again", trust_remote_code=True)
    assert torch.equal(again(IDS).logits, theirs(IDS).logits)


def drawn(wanted: int, fits: Callable[[Model], bool]) -> list[Model]:
    """Random decoders that score tokens, and encoders, that fit: the same in every run."""
    found: list[Model] = []
    for number in range(100):
        for spec in specs_of_seed(number, 40):
            data = spec.model_dump(mode="json") | {"name": f"drawn-{len(found)}"}
            if spec.architecture == "decoder":
                narrow = data["embedding"].get("width") not in (None, spec.d_model)
                data["head"] = {"kind": "language_modeling", "tie_embeddings": not narrow}
            elif spec.architecture != "encoder" or spec.vocab_size is None:
                continue
            try:
                model = Model.model_validate(data)
                if not fits(model):
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
    return any(block.mixer is not None for block in spec.last_stack.layer_blocks())


@pytest.mark.slow
@pytest.mark.parametrize("stateful", [False, True], ids=["attention", "states"])
def test_fifty_drawn_specs_agree(stateful: bool, tmp_path: Path) -> None:
    for spec in drawn(50, lambda each: carries_state(each) is stateful):
        (tmp_path / spec.name).mkdir()
        weights = stored(spec, tmp_path / spec.name / "own")
        zoo.convert(spec, weights, tmp_path / spec.name / "code", remote_code=True)
        ours: Any = zoo.build(spec, str(weights))
        theirs: Any = loaded(tmp_path / spec.name / "code")
        length = min(6, spec.context_length_of(spec.last_stack) or 6)
        ids, mask = IDS[:, :length] % (spec.vocab_size or 1), MASK[:, :length]
        for given in (None, mask):
            with torch.no_grad():
                expected, found = ours(ids, given), theirs(ids, attention_mask=given)
            for name, values in expected.items():
                real = mask.bool() if given is not None and values.shape[:2] == ids.shape else ...
                scale = max(1.0, float(values.abs().max()))
                torch.testing.assert_close(found[name][real], values[real], atol=1e-5 * scale, rtol=0)
        if spec.architecture == "decoder" and length > 3:
            check_greedy_tokens(ours, theirs, ids[:, :3], MASK[:, 1:4], min(5, length - 3))


def check_greedy_tokens(ours: Any, theirs: Any, ids: torch.Tensor, mask: torch.Tensor, count: int) -> None:
    """A padded batch goes on with the same tokens in transformers as here."""
    new = theirs.generate(ids, attention_mask=mask, max_new_tokens=count, do_sample=False, pad_token_id=0)
    prompts = [row[real.bool()].tolist() for row, real in zip(ids, mask, strict=True)]
    assert new[:, ids.shape[1] :].tolist() == ours.generate(prompts, count), ours.spec.name


def loaded(directory: Path) -> torch.nn.Module:
    """The model of a directory, by the class that its config names."""
    autos = json.loads((directory / "config.json").read_text())["auto_map"]
    return getattr(transformers, list(autos)[-1]).from_pretrained(directory, trust_remote_code=True).eval()


def test_what_the_code_cannot_express_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match="tiny-t5: architecture encoder-decoder cannot be written as remote code"
    ):
        zoo.convert(t5(), "random", tmp_path / "out", remote_code=True)
    with pytest.raises(UserError, match="layer 0 cannot be written as remote code"):
        zoo.convert(grouped(chunk=4), "random", tmp_path / "out", remote_code=True)
    assert not (tmp_path / "out").exists()
