"""The general fields of configs: what each reads is what it writes, and each refusal names the field, the rule and the value."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specs.language.load import load
from specs.model.model import Model
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError
from zoo.families.common.template import Field, FieldContext, UnfitError, joined

D_MODEL = f.Int("hidden_size", default=768)


def read(field: Field, **data: Any) -> Any:
    return field.read(Config(data, "config.json"))


def written(field: Field, value: Any, *, d_model: int = 768) -> dict[str, Any]:
    return field.write(value, FieldContext.of(_model(d_model), "hidden"))


def _model(d_model: int) -> Model:
    return load("gpt2").model_copy(update={"d_model": d_model})


def _gated(d_model: int, ratio: int) -> int:
    return (int(d_model * ratio * 2 / 3) + 7) // 8 * 8


@pytest.mark.parametrize("width", [lambda d_model, ratio: d_model * ratio, _gated])
@given(d_model=st.integers(1, 5000), ratio=st.integers(1, 12))
def test_a_multiple_is_written_as_the_ratio_that_it_is_read_from(
    width: Any, d_model: int, ratio: int
) -> None:
    field = f.Multiple(f.Int("mlp_ratio", default=4), D_MODEL, width)
    value = read(field, hidden_size=d_model, mlp_ratio=ratio)
    assert value == width(d_model, ratio)
    stated = written(field, value, d_model=d_model)["mlp_ratio"]
    assert width(d_model, stated) == value


@given(d_model=st.integers(2, 5000), value=st.integers(1, 50000))
def test_a_width_that_is_no_multiple_is_not_written(d_model: int, value: int) -> None:
    field = f.Multiple(f.Int("mlp_ratio", default=4), D_MODEL)
    if value % d_model == 0:
        assert written(field, value, d_model=d_model) == {"mlp_ratio": value // d_model}
        return
    with pytest.raises(
        UnfitError,
        match=rf"feed_forward\.hidden {value}: it follows from a whole mlp_ratio of the width {d_model}",
    ):
        written(field, value, d_model=d_model)


WORDS = f.Choice("gate", {True: "head", "per-element": "channel", False: "channel"}, True)
NULL = f.Choice("position", {None: "none", "rope": "rope"}, "rope", also=("old_position",))


@pytest.mark.parametrize(
    ("field", "data", "value"),
    [
        (WORDS, {}, "head"),
        (WORDS, {"gate": False}, "channel"),
        (WORDS, {"gate": "per-element"}, "channel"),
        (NULL, {}, "rope"),
        (NULL, {"position": None}, "none"),
        (NULL, {"old_position": "rope"}, "rope"),
        (f.Choice("switch", {True: 1, False: 0}, True), {"switch": None}, 0),
        (f.Choice("word", {"a": 1, "b": 2}, f.Derived(lambda config: "b")), {}, 2),
        (f.Positive("every", default=3), {}, 3),
        (f.EqualInLayers("top_k", default=2), {"top_k": [4, 4]}, 4),
        (f.EqualInLayers("top_k", default=2), {"top_k": 5}, 5),
        (f.Inside("attn_config", f.Int("heads", default=2)), {}, 2),
        (f.Inside("attn_config", f.Int("heads", default=2)), {"attn_config": {"heads": 7}}, 7),
        (f.NoneIfZero(f.Int("width", default=0), {"width": f.Int("width", default=0)}), {}, None),
        (f.NoneIfZero(f.Int("width", default=0), {"width": f.Int("width", default=0)}), {"width": 3}, {"width": 3}),
    ],
)  # fmt: skip
def test_a_field_is_read(field: Field, data: dict[str, Any], value: Any) -> None:
    assert read(field, **data) == value


@pytest.mark.parametrize(
    ("field", "data", "said"),
    [
        (WORDS, {"gate": 3}, "gate: is not supported\n  value: 3"),
        (WORDS, {"gate": "per-elment"}, "per-element"),
        (NULL, {"old_position": "rop"}, "old_position: is not supported\n  value: 'rop'"),
        (NULL, {"position": 3}, "position: must be a string\n  value: 3"),
        (f.Choice("switch", {True: 1, False: 0}, True), {"switch": 1}, "switch: must be true or false\n  value: 1"),
        (f.Positive("every", "old_every"), {"old_every": 0}, "old_every: must be at least 1\n  value: 0"),
        (f.EqualInLayers("top_k"), {"top_k": [2, 3]}, "top_k: must be one whole number, or the same one for every layer"),
        (f.EqualInLayers("top_k"), {"top_k": []}, "top_k: must be one whole number, or the same one for every layer"),
        (f.Inside("attn_config", f.Int("heads")), {"attn_config": {"heads": "2"}}, "attn_config.heads: must be a whole number"),
        (
            f.Equal(D_MODEL, f.Inside("ffn", f.Int("width", default=D_MODEL)), because="experts read the stream"),
            {"hidden_size": 3, "ffn": {"width": 4}},
            "ffn.width: must equal hidden_size, which is 3: experts read the stream",
        ),
        (
            f.Equal(f.Bool("bias", default=False), f.Bool("qkv_bias", "old_bias", default=False)),
            {"old_bias": True},
            "old_bias: must equal bias, which is false\n  value: True",
        ),
    ],
)  # fmt: skip
def test_a_refusal_names_the_field_and_the_rule(field: Field, data: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(field, **data)
    assert said in str(caught.value)


def test_a_fixed_field_in_a_mapping_is_refused_by_its_path() -> None:
    config = Config({"attn_config": {"alibi": False}}, "config.json")
    config.must("attn_config.qk_ln", False, "it has no norms")
    with pytest.raises(ConfigError, match=r"attn_config\.alibi: must be true: it always adds ALiBi"):
        config.must("attn_config.alibi", True, "it always adds ALiBi")


ROPE, LEARNED, SINUSOIDAL = (load(name).position for name in ("llama-3-8b", "gpt2", "bert-base-sinusoidal"))
KINDS = f.Kinds(
    f.Choice("position", {"sinusoids": "sinusoids", "table": "table", "none": "none"}, "table"),
    {
        "sinusoids": {"kind": "sinusoidal"},
        "table": {"kind": "learned", "offset": f.Int("offset", default=0)},
        "none": {"kind": "none"},
    },
)


def test_a_part_is_chosen_by_a_word_and_written_by_its_kind() -> None:
    assert read(KINDS, position="table", offset=2) == {"kind": "learned", "offset": 2}
    assert written(KINDS, LEARNED) == {"position": "table", "offset": 0}
    assert written(KINDS, SINUSOIDAL) == {"position": "sinusoids"}


def test_a_part_of_another_kind_is_written_as_the_last() -> None:
    """Reading the config back shows the difference."""
    assert written(KINDS, ROPE) == {"position": "none"}


def test_constants_choose_among_parts_of_a_kind() -> None:
    kinds = f.Kinds(
        f.Bool("shifted", default=False),
        {True: {"kind": "learned", "offset": 2}, False: {"kind": "learned", "offset": 0}},
    )
    assert written(kinds, LEARNED) == {"shifted": False}
    assert written(kinds, LEARNED.model_copy(update={"offset": 2})) == {"shifted": True}


def test_a_computed_value_reads_the_config_and_is_written_for_its_model() -> None:
    half = f.Computed(
        f.Int("base", default=256),
        lambda base, config: base / D_MODEL.read(config),
        lambda factor, context: round(factor * context.model.d_model),
    )
    assert read(half, base=4, hidden_size=8) == 0.5
    assert written(half, 0.5) == {"base": 384}
    assert written(f.Computed(D_MODEL, lambda width, config: width), 7) == {"hidden_size": 7}


def test_fields_of_one_mapping_are_written_together() -> None:
    assert joined({"a": 1, "part": {"x": 1, "y": 1}}, {"part": {"y": 2}, "b": 3}) == {
        "a": 1,
        "part": {"x": 1, "y": 2},
        "b": 3,
    }
