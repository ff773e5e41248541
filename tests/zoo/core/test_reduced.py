"""Reduced and shrunk models find sizes by the role of a field, not by its name."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest

import specs.base.registry
from specs.base.base import Component, Spec
from specs.base.roles import Role, fields_by_role, rewritten
from specs.language.load import load
from specs.model.model import Model
from zoo.core.reduced import fewer_experts, narrowed, short_switch_lengths, small_limits
from zoo.training.shrinking import shrunk


class Hydra(Component):
    """A feed-forward whose fields share their names with sizes of attention and mean something else."""

    kind: Literal["hydra"] = "hydra"
    heads: str = "seven"
    window: int = 100
    experts: int = 90
    dimensions: int = 640
    clip: float = 30.0
    span: Annotated[int, Role.WIDTH] = 256
    limit: Annotated[float | None, Role.SOFTCAP] = 50.0


SAME = {"heads": "seven", "window": 100, "experts": 90, "dimensions": 640, "clip": 30.0}


@pytest.fixture
def hydra(monkeypatch: pytest.MonkeyPatch) -> Model:
    monkeypatch.setitem(
        specs.base.registry._slots["feed_forward"], "hydra", specs.base.registry.Kind(Hydra, None)
    )
    return load("tiny-gpt", ["decoder.block.feed_forward={kind: hydra, span: 256}", "expect={}"])


def fields_of(spec: Model) -> dict[str, object]:
    assert spec.decoder is not None
    block: Any = spec.decoder.block
    fields: dict[str, object] = block.feed_forward.model_dump(exclude={"kind"})
    return fields


def test_fields_of_a_plugin_are_reduced_by_role_and_not_by_name(hydra: Model) -> None:
    assert fields_of(narrowed(hydra, 4)) == {**SAME, "span": 64, "limit": 50.0}
    assert fields_of(small_limits(hydra)) == {**SAME, "span": 256, "limit": 2.0}
    assert fields_of(fewer_experts(hydra)) == fields_of(short_switch_lengths(hydra)) == fields_of(hydra)
    assert fields_of(shrunk(hydra, width=hydra.d_model // 2)) == {**SAME, "span": 128, "limit": 50.0}


def test_every_size_of_an_attention_states_its_role() -> None:
    spec = load("deepseek-v3")
    assert spec.decoder is not None
    block: Any = spec.decoder.block
    roles = {name: role for name, role, _ in fields_by_role(block.attention)}
    assert roles == {
        "heads": Role.HEADS,
        "query_rank": Role.WIDTH,
        "kv_rank": Role.WIDTH,
        "head_dim": Role.HEAD_WIDTH,
        "rope_dim": Role.HEAD_WIDTH,
        "value_dim": Role.HEAD_WIDTH,
        "dropout": Role.DROPOUT,
    }


def test_parts_are_rewritten_from_the_inside_out() -> None:
    seen: list[str] = []

    def look(part: Spec) -> dict[str, object]:
        seen.append(type(part).__name__)
        return {}

    spec = load("mixtral-8x7b")
    assert rewritten(spec, look) == spec
    assert seen[-1] == "Model"
    assert seen.index("Gated") < seen.index("Mixture") < seen.index("PreNorm") < seen.index("Stack")


def test_a_stack_with_a_width_of_its_own_is_narrowed_by_it() -> None:
    spec = load("whisper-tiny", ["encoder.d_model=192"])
    half = narrowed(spec, 2)
    assert half.encoder is not None
    assert half.decoder is not None
    assert (half.d_model, half.encoder.d_model, half.decoder.d_model) == (192, 96, None)
    blocks: list[Any] = [half.encoder.block, half.decoder.block]
    assert [block.attention.head_dim for block in blocks] == [16, 32]
    assert shrunk(spec, width=48).encoder is not None


def test_values_stay_as_wide_as_keys_where_a_spec_states_no_width_of_theirs() -> None:
    """Qwen3's heads are wider than d_model / heads, and MiMo's values are narrower than its keys."""
    for name, widths in {"qwen3-0.6b": (32, None), "mimo-v2-flash": (48, 32)}.items():
        attention: Any = narrowed(load(name), 4).decoder.block.attention
        assert (attention.head_dim, attention.value_dim) == widths
        smaller: Any = shrunk(load(name), width=256).decoder.block.attention
        assert (smaller.value_dim is None) == (widths[1] is None)
