"""Whole random specs over all of the language: every one is valid, small enough to run, and found again by its seed.

``whole_specs`` is a strategy for hypothesis; ``specs_of_seed`` gives the same without it, for tests that go through specs,
targets, precisions and layouts by number.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from specs.base.errors import SpecError
from specs.language.document import Document
from specs.language.named_blocks import with_named_blocks
from specs.language.validation import validate
from specs.model.model import Model
from tests.strategies import ACTIVATIONS, Data, model_data

LENGTHS = (2, 3, 9, 16)
"""Where rotations change with the length of the input: within what tests read, and beyond it."""


def set_on(*keys: str, to: st.SearchStrategy[Any]) -> Callable[[st.DrawFn, Data], None]:
    """A change that gives a key of some part a drawn value; a part that is not there is left alone."""

    def change(draw: st.DrawFn, data: Data) -> None:
        part: Any = data
        for key in keys[:-1]:
            part = part.get(key) if isinstance(part, dict) else None
        if isinstance(part, dict):
            part[keys[-1]] = draw(to)

    return change


@st.composite
def scaled_ropes(draw: st.DrawFn) -> Data:
    """Rotary positions of any theta, number of dimensions and scaling; whether they fit the heads is for the rules to say."""
    rotated = draw(st.sampled_from([2, 4, 6]))
    factors = st.lists(st.sampled_from([1.0, 1.3, 4.0]), min_size=rotated // 2, max_size=rotated // 2)
    original = st.sampled_from(LENGTHS)
    scaling: Data = draw(
        st.one_of(
            st.fixed_dictionaries({"kind": st.just("dynamic_ntk"), "factor": st.sampled_from([1.0, 2.5]), "original_context_length": original}),
            st.fixed_dictionaries(
                {"kind": st.just("longrope"), "short_factor": factors, "long_factor": factors, "original_context_length": original},
                optional={"attention_factor": st.sampled_from([0.8, 1.4])},
            ),
            st.fixed_dictionaries(
                {"kind": st.just("yarn"), "factor": st.sampled_from([1.0, 8.0]), "original_context_length": original},
                optional={
                    "attention_factor": st.just(1.1), "truncate": st.booleans(), "beta_fast": st.just(8.0), "beta_slow": st.just(0.5)
                },
            ),
            st.fixed_dictionaries({"kind": st.just("linear"), "factor": st.sampled_from([1.0, 3.0])}),
        )
    )  # fmt: skip
    theta, layout = (
        draw(st.sampled_from([10.0, 1e4, 1e6])),
        draw(st.sampled_from(["half_split", "interleaved"])),
    )
    return {"kind": "rope", "theta": theta, "dimensions": rotated, "layout": layout, "scaling": scaling}


def named_patterns() -> st.SearchStrategy[list[Data]]:
    """Layers of the stack's block and of the one that is called ``varied``."""
    run = st.fixed_dictionaries(
        {"repeat": st.integers(1, 2)}, optional={"use": st.just("varied"), "shared": st.booleans()}
    )
    group = st.fixed_dictionaries(
        {"pattern": st.lists(run, min_size=1, max_size=3), "repeat": st.integers(1, 2)},
        optional={"shared": st.booleans()},
    )
    return st.lists(run | group, min_size=1, max_size=3)


def vary(stack: str) -> Callable[[st.DrawFn, Data], None]:
    """A change that gives a stack a named block, which differs in one thing, and layers that use it."""
    differs = st.sampled_from(
        [
            {}, {"attention": {"window": 3}}, {"attention": {"position": {"kind": "none"}}}, {"norm": {"kind": "rms_norm", "eps": 1e-5}},
            {"kind": "parallel", "norms": "separate"}, {"feed_forward": {"hidden": 7}}, {"dropout": 0.2}, {"attention": {"kind": "multi_query"}},
            {"attention": {"position": {"kind": "rope", "theta": 50.0, "dimensions": 2}}},
        ]
    )  # fmt: skip

    def change(draw: st.DrawFn, data: Data) -> None:
        if stack in data:
            data[stack] |= {"blocks": {"varied": draw(differs)}, "layers": draw(named_patterns())}

    return change


STACKS = ("encoder", "decoder")
CHANGES: list[Callable[[st.DrawFn, Data], None]] = [
    set_on("position", to=scaled_ropes()),
    set_on("position", to=st.just({"kind": "alibi", "precision": "bfloat16"})),
    set_on("position", to=st.just({"kind": "rope", "rotates": "input"})),
    set_on("position", to=st.just({"kind": "sinusoidal", "base": 100.0})),
    set_on("position", to=st.just({"kind": "sinusoidal", "offset": 3, "table": True})),
    set_on("position", to=st.just({"kind": "relative_bias", "buckets": 12, "max_distance": 7})),
    set_on("context_length", to=st.sampled_from([4, 11, 40])),
    set_on("embedding", "dropout", to=st.sampled_from([0.0, 0.1])),
    set_on("head", "dropout", to=st.just(0.1)),
    set_on("head", "output", to=st.sampled_from(["pooler_output", "text_embeds", "sentence_embedding"])),
    set_on("head", "activation", to=st.sampled_from(["identity", *ACTIVATIONS])),
    set_on("head", to=st.just({"kind": "language_modeling", "activation": "relu", "norm": {"kind": "rms_norm"}})),
    set_on("initialization", "std", to=st.just(0.3)),
    set_on("initialization", "depth_scaled", to=st.just(True)),
    set_on("initialization", "factor", to=st.just(0.5)),
    set_on("year", to=st.just(2024)),
    set_on("summary", to=st.just("Drawn: \"quoted\", 'quoted', é, a: b #c")),
    *(vary(stack) for stack in STACKS),
    *(
        set_on(stack, *keys, to=to)
        for stack in STACKS
        for keys, to in [
            (("position",), scaled_ropes()),
            (("embedding",), st.just({"token_types": 2, "scale": 0.5})),
            (("block", "attention", "position"), scaled_ropes()),
            (("block", "attention", "window"), st.sampled_from([2, 3, 100])),
            (("block", "attention", "chunk"), st.sampled_from([2, 3, 100])),
            (("block", "attention", "dropout"), st.just(0.1)),
            (("block", "attention", "scale"), st.sampled_from([0.05, 3.0])),
            (("block", "attention", "sinks"), st.just(True)),
            (("block", "attention", "block_summaries"), st.sampled_from([{"size": 4, "norm": {"kind": "rms_norm"}}])),
            (("block", "feed_forward", "dropout"), st.just(0.1)),
            (("block", "feed_forward", "activation"), st.sampled_from(["identity", "xielu", *ACTIVATIONS])),
            (("block", "feed_forward", "router", "scale"), st.just(0.3)),
            (("block", "norm"), st.sampled_from([{"kind": "none"}, {"kind": "rms_norm", "eps": 0.01}])),
        ]
    ),
]  # fmt: skip


@st.composite
def whole_specs(draw: st.DrawFn, changes: int = 4) -> Model:
    """A valid model: one of ``model_data``, with up to so many changes that leave it valid."""
    data = draw(model_data())
    model = Model.model_validate(data)
    for change in draw(st.lists(st.sampled_from(CHANGES), max_size=changes, unique_by=id)):
        changed = copy.deepcopy(data)
        change(draw, changed)
        try:
            model = validate(with_named_blocks(Document(changed)))
        except SpecError:
            continue
        data = changed
    return model


def specs_of_seed(number: int, count: int) -> list[Model]:
    """So many random specs, the same for the same seed and count under one version of hypothesis."""
    found: list[Model] = []

    @seed(number)
    @settings(
        max_examples=count, database=None, phases=[Phase.generate], deadline=None, suppress_health_check=list(HealthCheck)
    )  # fmt: skip
    @given(whole_specs())
    def collect(model: Model) -> None:
        found.append(model)

    collect()
    return found[:count]
