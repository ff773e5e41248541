"""Speculative decoding: the tokens of the target alone, whatever the draft proposes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from exporters.runtime.draft import Proposal
from exporters.runtime.exported import open_export
from exporters.runtime.generation import Continuation, Generator
from exporters.runtime.speculative import SpeculativeGenerator, accepted_or_drawn
from specs.model.model import Model
from tests.exporters.models import written
from tests.exporters.runtime.test_running import DECISIVE, LATENT, LLAMA
from tests.exporters.whole.test_mixers import MIXERS
from tests.strategies import model_data
from tests.thinned import one_in
from tests.zoo.tiny import BLOCK, gpt2
from zoo.generation.sampling import Sampling

DECODERS: dict[str, dict[str, Any]] = {
    "gpt2": {"decoder": {"layers": 2, "block": BLOCK}},
    "windowed": LLAMA,
    "latent": LATENT,
    **{
        kind: {
            "position": {"kind": "rope"},
            "decoder": {
                "layers": [{"use": "mixing"}, {}],
                "block": BLOCK,
                "blocks": {"mixing": {**BLOCK, "attention": None, "mixer": {"kind": kind, **mixer}}},
            },
        }
        for kind, mixer in MIXERS.items()
    },
}
"""Decoders with attention, and hybrids of each mixer with a state of constant size."""
TARGETS = ["portable", "cpu", "tensorrt"]
PROMPTS = st.lists(st.lists(st.integers(0, 19), min_size=1, max_size=12), min_size=1, max_size=2)


def spec(name: str, *, shallow: bool = False, **changes: Any) -> Model:
    """A decoder by its name, or its first layer: the random weights of the layer are the same."""
    head = {"kind": "language_modeling", "tie_embeddings": False}  # tied, it would repeat its input
    data = {**DECODERS[name], "context_length": 40, "head": head, **changes}
    layers = data["decoder"]["layers"]
    if shallow and isinstance(layers, list):
        data |= {"decoder": {**data["decoder"], "layers": layers[:1]}, "position": {"kind": "none"}}
    elif shallow:
        data["decoder"] = {**data["decoder"], "layers": 1}
    return gpt2(initialization=DECISIVE, **data)


def tokens(directory: Path, names: str) -> None:
    """Put a tokenizer of one-letter tokens beside an export."""
    Tokenizer(models.BPE({name: index for index, name in enumerate(names)}, [])).save(
        str(directory / "tokenizer.json")
    )


@dataclass
class Pair:
    """A target alone, and with its first layer and with itself as the draft."""

    alone: Generator
    drafted: SpeculativeGenerator
    own: SpeculativeGenerator

    def without(self, prompts: Sequence[list[int]], most: int, **options: Any) -> list[Continuation]:
        """The continuations by the target alone, each on its own."""
        return [self.alone.generate([prompt], most, **options).continuations[0] for prompt in prompts]


Opens = Callable[[str, str], Pair]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Opens:
    """Loads the exports of a decoder for a target, once."""
    place = tmp_path_factory.mktemp("drafts")

    @cache
    def get(name: str, target: str) -> Pair:
        exports = []
        for shallow in (False, True):
            directory = place / f"{name}-{target}-{shallow}"
            written(spec(name, shallow=shallow), directory, target=target, verify=False)
            exports.append(open_export(directory))
        whole, draft = exports
        return Pair(
            Generator(whole), SpeculativeGenerator(whole, draft, 1), SpeculativeGenerator(whole, whole, 1)
        )

    return get


@one_in(24)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", DECODERS)
@given(
    prompts=PROMPTS,
    draft_tokens=st.integers(1, 9),
    most=st.integers(1, 40),
    own=st.booleans(),
    stop=st.lists(st.integers(0, 19), max_size=1),
)
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_draft_changes_no_token(
    opened: Opens,
    name: str,
    target: str,
    prompts: list[list[int]],
    draft_tokens: int,
    most: int,
    own: bool,
    stop: list[int],
) -> None:
    """The draft is the first layer of the target, or, as its ``own``, the target itself: then every proposal is accepted."""
    pair = opened(name, target)
    drafted = pair.own if own else pair.drafted
    drafted.draft_tokens = draft_tokens
    told: list[list[int]] = []
    found = drafted.generate(prompts, most, stop=stop, tell=told.append)
    assert found.continuations == pair.without(prompts, most, stop=stop)
    assert [token for (token,) in told] == [token for each in found.continuations for token in each.ids]
    assert 0 <= found.accepted <= found.proposed
    if own and not stop:
        assert found.accepted == found.proposed


@pytest.mark.slow
@given(
    data=st.data(), draft_tokens=st.integers(1, 9), prompt=st.lists(st.integers(0, 6), min_size=1, max_size=5)
)
@settings(max_examples=25, deadline=None)
def test_a_draft_changes_no_token_of_drawn_models(
    data: st.DataObject, draft_tokens: int, prompt: list[int]
) -> None:
    head = {"kind": "language_modeling", "tie_embeddings": False}
    drawn = [
        Model.model_validate({**data.draw(model_data(["decoder"])), "head": head, "initialization": DECISIVE})
        for _ in range(2)
    ]
    with TemporaryDirectory() as place:
        exports = []
        for number, model in enumerate(drawn):
            directory = Path(place) / str(number)
            target = data.draw(st.sampled_from(TARGETS))
            written(model, directory, target=target, verify=False)
            tokens(directory, "abcdefg")  # then vocabularies may differ in size
            exports.append(open_export(directory))
        longest = Generator(exports[0]).longest
        prompt = prompt[: longest - 1]
        found = (
            SpeculativeGenerator(exports[0], exports[1], draft_tokens).generate([prompt], 24).continuations
        )
        assert found == Generator(exports[0]).generate([prompt], 24).continuations


def test_a_draft_is_accepted_in_part(opened: Opens) -> None:
    """What the other tests rely on: proposals are accepted and rejected."""
    drafted = opened("windowed", "cpu").drafted
    drafted.draft_tokens = 4
    found = drafted.generate([[3, 1, 4], [9]], 30)
    assert 0 < found.accepted < found.proposed
    assert found.calls < sum(len(each.ids) - 1 for each in found.continuations)
    assert found.acceptance == found.accepted / found.proposed
    assert found.tokens_per_call == 58 / found.calls


def test_sessions_that_alternate_yield_the_cores(opened: Opens) -> None:
    pair, entry = opened("windowed", "cpu"), "session.force_spinning_stop"
    for generator in (pair.drafted.target, pair.drafted.draft):
        assert generator.decoder.session.get_session_options().get_session_config_entry(entry) == "1"
    with pytest.raises(RuntimeError, match=entry):
        pair.alone.decoder.session.get_session_options().get_session_config_entry(entry)


def test_a_proposal_that_is_judged_has_the_distribution_of_the_target() -> None:
    random = np.random.default_rng(0)
    wanted, proposed = (random.dirichlet(np.full(8, 0.5)) for _ in range(2))
    counts = np.zeros(8)
    for _ in range(20_000):
        token = int(random.choice(8, p=proposed))
        counts[accepted_or_drawn(wanted, Proposal(token, proposed), random)] += 1
    np.testing.assert_allclose(counts / counts.sum(), wanted, atol=0.015)
    assert np.abs(wanted - proposed).max() > 0.1  # another distribution than the draft's


@pytest.mark.slow
def test_sampling_draws_from_the_target(opened: Opens) -> None:
    """Second and third tokens, which the draft proposes, have the probabilities that the target gives them."""
    pair, sampling = opened("windowed", "cpu"), Sampling(temperature=1.5, top_k=6)
    pair.drafted.draft_tokens = 2
    found = pair.drafted.generate([[3, 1]] * 300, 4, sampling)
    assert 0.1 < found.accepted / found.proposed < 0.9
    alone = pair.alone.generate([[3, 1]] * 300, 4, sampling)
    shares = [
        np.bincount([each.ids[place] for each in generation.continuations], minlength=20) / 300
        for place in (1, 2)
        for generation in (found, alone)
    ]
    np.testing.assert_allclose(shares[0], shares[1], atol=0.12)
    np.testing.assert_allclose(shares[2], shares[3], atol=0.12)
    assert found != pair.drafted.generate([[3, 1]] * 300, 4, replace(sampling, seed=1))


def test_the_settings_of_the_target_apply(tmp_path: Path) -> None:
    exports = []
    for shallow in (False, True):
        written(spec("windowed", shallow=shallow), tmp_path / str(shallow), target="cpu", verify=False)
        exports.append(open_export(tmp_path / str(shallow)))
    free = Generator(exports[0]).generate([[3, 1, 4]], 30).continuations
    stated = {"no_repeat_ngram_size": 2, "repetition_penalty": 1.4, "eos_token_id": 7, "min_new_tokens": 5}
    (tmp_path / "False" / "generation_config.json").write_text(json.dumps(stated))
    target = open_export(tmp_path / "False")
    found = SpeculativeGenerator(target, exports[1], 4).generate([[3, 1, 4]], 30).continuations
    assert found == Generator(target).generate([[3, 1, 4]], 30).continuations
    assert found != free


def test_a_draft_with_a_shorter_context_drafts_to_its_end(tmp_path: Path) -> None:
    for name, length in (("target", 40), ("draft", 12)):
        written(spec("windowed", context_length=length), tmp_path / name, target="cpu", verify=False)
    target, draft = (open_export(tmp_path / name) for name in ("target", "draft"))
    found = SpeculativeGenerator(target, draft, 4).generate([[3, 1, 4]], 30)
    assert found.continuations == Generator(target).generate([[3, 1, 4]], 30).continuations
    assert found.accepted == found.proposed == 8  # and then one token per call
    assert found.calls == 1 + 1 + 19
    longer = SpeculativeGenerator(target, draft, 4).generate([[3, 1, 4] * 5], 9)
    assert longer.continuations == Generator(target).generate([[3, 1, 4] * 5], 9).continuations
    assert longer.acceptance is None
