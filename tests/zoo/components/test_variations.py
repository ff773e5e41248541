"""Plain models are made of the plain classes; what single families add comes with classes of its own."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import nn

import zoo.registry
from specs.base.errors import PluginError
from specs.kinds.attention import MultiHead
from specs.kinds.block_summaries import BlockSummaries
from specs.kinds.norm import RMSNorm
from specs.language.load import load
from specs.model.model import Model
from tests.exporters.reduced_presets import filled, structure
from tests.zoo.tiny import gpt2
from zoo.builder import assemble
from zoo.components.attention import SelfAttention
from zoo.components.attention_variations import VariedSelfAttention
from zoo.components.block import PreNorm
from zoo.components.mixer import Mixer, StateTensor
from zoo.components.reused_keys_values import ReusingAttention
from zoo.context import BuildContext, LayerContext
from zoo.models.stack import Stack
from zoo.models.varied_stack import VariedStack
from zoo.registry import build_component, builds


@pytest.mark.parametrize("name", ["gpt2", "llama-3.2-1b"])
def test_gpt2_and_llama_are_made_of_the_plain_classes(name: str) -> None:
    model: Any = assemble(load(name))
    assert type(model.decoder) is Stack
    for block in model.decoder.blocks:
        assert type(block) is PreNorm
        assert type(block.attention) is SelfAttention
        assert not block.extensions


CONTEXT = LayerContext(8, 16, causal=True, cross=False)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({}, SelfAttention),
        ({"window": 4}, VariedSelfAttention),
        ({"clip": 1.0}, VariedSelfAttention),
        ({"reuses_keys_values": True}, ReusingAttention),
        ({"reuses_keys_values": True, "clip": 1.0}, ReusingAttention),
    ],
    ids=str,
)
def test_the_most_special_class_is_built(fields: dict[str, Any], kind: type[nn.Module]) -> None:
    assert type(build_component(MultiHead(heads=2, **fields), CONTEXT)) is kind


class Louder(MultiHead):
    """Attention of a plugin."""


def test_a_plugins_attention_does_not_ignore_variations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zoo.registry, "_builders", dict(zoo.registry._builders))

    @builds(Louder)
    class LouderAttention(SelfAttention):
        pass

    assert type(build_component(Louder(heads=2), CONTEXT)) is LouderAttention
    with pytest.raises(PluginError) as error:
        build_component(Louder(heads=2, softcap=3.0), CONTEXT)
    assert str(error.value) == (
        "LouderAttention ignores softcap, which its spec has\n"
        "  Extend zoo.components.attention_variations.VariedSelfAttention."
    )
    with pytest.raises(PluginError, match=r"ignores reuses_keys_values.*\n  Extend .*\.ReusingAttention\."):
        build_component(Louder(heads=2, reuses_keys_values=True), CONTEXT)
    summaries = BlockSummaries(size=4, norm=RMSNorm())
    with pytest.raises(PluginError, match=r"ignores block_summaries.*\n  Extend .*\.SummarizingAttention\."):
        build_component(Louder(heads=2, block_summaries=summaries), CONTEXT)


def test_attention_extends_its_base(monkeypatch: pytest.MonkeyPatch) -> None:
    class Deaf(Mixer):
        def __init__(self, spec: MultiHead, context: BuildContext) -> None:
            super().__init__()

        @property
        def state(self) -> tuple[StateTensor, ...]:
            return ()

    builders: dict[Any, Any] = {**zoo.registry._builders, MultiHead: Deaf}
    monkeypatch.setattr(zoo.registry, "_builders", builders)
    with pytest.raises(PluginError) as error:
        assemble(gpt2())
    assert str(error.value) == (
        "Deaf builds a kind of attention, and does not extend AttentionMixer\n"
        "  Extend zoo.components.mixer.AttentionMixer, or register the kind in the slot mixer."
    )


def test_two_builders_of_a_kind_are_an_error_and_two_variants_are_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(zoo.registry, "_builders", {})
    monkeypatch.setattr(zoo.registry, "_variants", {})

    class Plain(nn.Module):
        def __init__(self, spec: MultiHead, context: BuildContext) -> None:
            super().__init__()

    class Wide(Plain):
        pass

    builds(Louder)(Plain)
    builds(Louder, when=lambda spec, context: spec.heads > 2)(Wide)
    assert type(build_component(Louder(heads=2), CONTEXT)) is Plain
    assert type(build_component(Louder(heads=4), CONTEXT)) is Wide
    with pytest.raises(PluginError, match="Louder has two builders"):
        builds(Louder)(Wide)


def test_an_extension_acts_in_blocks_of_any_kind() -> None:
    def built(**block: Any) -> Any:
        data = gpt2().model_dump()
        data["decoder"]["block"] |= {"kind": "post_norm", **block}
        return filled(Model.model_validate(data))

    plain, scaled = built(), built(output_scale=3.0)
    x = torch.randn(1, 4, plain.spec.d_model, generator=torch.Generator().manual_seed(0))
    tokens = plain.positions(torch.zeros(1, 4, dtype=torch.int64), None, None, None)
    one, other = (
        model.decoder.blocks[0](x, model.decoder.mixer_context(x, tokens, tokens.positions))[0]
        for model in (plain, scaled)
    )
    torch.testing.assert_close(other, 3.0 * one)


def test_a_sum_over_layers_is_of_the_mean_of_several_streams() -> None:
    data = gpt2().model_dump()
    data["decoder"] |= {
        "weighted_layer_sum": True,
        "altup": {"streams": 2, "norm": {"kind": "rms_norm", "eps": 1e-6}},
    }
    model: Any = filled(Model.model_validate(data))
    assert isinstance(model.decoder, VariedStack)
    assert model(torch.arange(6)[None]).logits.isfinite().all()


def test_copies_of_a_model_with_streams_read_their_own_weights() -> None:
    model: Any = filled(structure("gemma3n-e4b-text"))
    ids = torch.arange(5)[None]
    with torch.no_grad():
        logits = model(ids).logits
        copied, stored = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
        for other in (copied, stored):
            assert torch.equal(other(ids).logits, logits)
            for block in other.decoder.blocks:
                block.altup.output_scale.zero_()
            assert not torch.equal(other(ids).logits, logits)
        assert torch.equal(model(ids).logits, logits)
