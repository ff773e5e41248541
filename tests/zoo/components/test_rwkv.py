"""The mixers of RWKV-7 against the published formula, computed one token at a time in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from pydantic import ValidationError
from torch import Tensor, nn

from specs.kinds.rwkv import RWKV7, RWKVChannelMix
from specs.model.model import Model
from tests.zoo.components.contexts import mixer_context
from tests.zoo.tiny import gpt2
from zoo.components import rwkv as components
from zoo.context import BuildContext
from zoo.registry import build_component

WIDTH, TOKENS = 12, 9
CONTEXT = BuildContext(WIDTH, None, causal=True, cross=False)
FIRST = RWKV7(heads=2, head_dim=5, decay_rank=3, update_rank=4, gate_rank=6)
LATER = FIRST.model_copy(update={"value_rank": 2})
EXACT: dict[str, Any] = {"atol": 1e-10, "rtol": 1e-10}


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def built(spec: Any, seed: int = 0) -> Any:
    module = build_component(spec, CONTEXT).double()
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        nn.init.normal_(parameter, 0.0, 0.5, generator=generator)
    return module


def time_mix(m: Any, x: Tensor, first: list[Tensor] | None) -> list[Tensor]:
    """The outputs of one row, T D, and its values in place of ``first``, the values of the first layer."""
    before, state, outputs = torch.zeros(WIDTH, dtype=x.dtype), torch.zeros(2, 5, 5, dtype=x.dtype), []
    for t, token in enumerate(x):
        mixed = {
            name: token + (before - token) * getattr(m, f"{name}_mix")
            for name in ("query", "decay", "key", "value", "update", "gate")
        }
        r, k, v = (getattr(m, name).weight @ mixed[name] for name in ("query", "key", "value"))
        low = m.decay_out.bias + m.decay_out.weight @ torch.tanh(m.decay_in.weight @ mixed["decay"])
        w = torch.exp(-torch.exp(torch.tensor(-0.5, dtype=x.dtype)) * torch.sigmoid(low))
        a = torch.sigmoid(m.update_out.bias + m.update_out.weight @ m.update_in.weight @ mixed["update"])
        g = m.gate_out.weight @ torch.sigmoid(m.gate_in.weight @ mixed["gate"])
        if m.share_in is None:
            assert first is not None
            first.append(v)
        else:
            assert first is not None
            share = torch.sigmoid(m.share_out.bias + m.share_out.weight @ m.share_in.weight @ mixed["value"])
            v = torch.lerp(v, first[t], share)
        r, k, v, w, a = (each.view(2, 5) for each in (r, k, v, w, a))
        removal = F.normalize(k * m.removal_scale, dim=-1)
        k = k * (1 + (a - 1) * m.update_scale)
        for head in range(2):
            erased = torch.outer(removal[head], a[head] * removal[head])
            state[head] = state[head] @ (torch.diag(w[head]) - erased) + torch.outer(v[head], k[head])
        y = torch.stack([state[head] @ r[head] for head in range(2)])  # H K
        y = F.group_norm(y.view(1, -1), 2, m.norm.weight.view(-1), m.norm.bias.view(-1), 6.4e-4).view(2, 5)
        y = y + (r * k * m.bonus).sum(-1, keepdim=True) * v
        outputs.append(m.output.weight @ (y.view(-1) * g))
        before = token
    return outputs


def channel_mix(m: Any, x: Tensor) -> Tensor:
    before = torch.cat((torch.zeros(1, WIDTH, dtype=x.dtype), x[:-1]))
    return torch.relu((x + (before - x) * m.mix) @ m.up.weight.T) ** 2 @ m.down.weight.T


@torch.no_grad()
def test_time_mixing_is_the_published_formula() -> None:
    first, later = built(FIRST), built(LATER, 1)
    x, other = drawn(2, TOKENS, WIDTH), drawn(2, TOKENS, WIDTH, seed=1)
    context = mixer_context()
    found = first(x, context, None)[0], later(other, context, None)[0]
    for row in range(2):
        values: list[Tensor] = []
        expected = time_mix(first, x[row], values), time_mix(later, other[row], values)
        for one, outputs in zip(found, expected, strict=True):
            torch.testing.assert_close(one[row], torch.stack(outputs), **EXACT)


@torch.no_grad()
def test_channel_mixing_is_the_published_formula() -> None:
    mixer, x = built(RWKVChannelMix(hidden=7)), drawn(2, TOKENS, WIDTH)
    found, (last,) = mixer(x, mixer_context(), None)
    for row in range(2):
        torch.testing.assert_close(found[row], channel_mix(mixer, x[row]), **EXACT)
    assert torch.equal(last, x[:, -1])


@torch.no_grad()
@pytest.mark.parametrize("spec", [FIRST, RWKVChannelMix(hidden=7)], ids=lambda spec: spec.kind)
def test_padding_anywhere_enters_no_state(spec: Any) -> None:
    mixer, x = built(spec), drawn(2, TOKENS, WIDTH)
    real = torch.tensor([[0, 0, 1, 1, 0, 1, 1, 0, 0], [1, 0, 0, 1, 1, 1, 1, 1, 1]])
    found, state = mixer(x, mixer_context(real), None)
    for row, kept in enumerate(real.bool()):
        alone, left = mixer(x[row : row + 1, kept], mixer_context(), None)
        torch.testing.assert_close(found[row, kept], alone[0], **EXACT)
        for one, other in zip(state, left, strict=True):
            torch.testing.assert_close(one[row], other[0], **EXACT)


@torch.no_grad()
@pytest.mark.parametrize("spec", [FIRST, RWKVChannelMix(hidden=7)], ids=lambda spec: spec.kind)
@pytest.mark.parametrize("cut", [1, 4])
def test_pieces_continue_the_declared_state(spec: Any, cut: int) -> None:
    mixer, x = built(spec), drawn(2, TOKENS, WIDTH)
    whole, last = mixer(x, mixer_context(), None)
    assert [tuple(each.shape) for each in last] == [each.shape(2, TOKENS) for each in mixer.state]
    pieces, state = [], None
    for piece in x.split(cut, 1):
        y, state = mixer(piece, mixer_context(), state)
        pieces.append(y)
    torch.testing.assert_close(torch.cat(pieces, 1), whole, **EXACT)
    for one, other in zip(state or (), last, strict=True):
        torch.testing.assert_close(one, other, **EXACT)


BLOCK: dict[str, Any] = {
    "kind": "pre_norm",
    "norm": {"kind": "layer_norm"},
    "attention": None,
    "feed_forward": None,
    "mixer": {"kind": "rwkv7", "heads": 2, "head_dim": 4, "decay_rank": 2, "update_rank": 2, "gate_rank": 3},
}


def rwkv(*layers: str, **changes: Any) -> Model:
    """A model of layers that begin with values of their own (``first``), share them (``later``), or mix channels."""
    later = {"mixer": {**BLOCK["mixer"], "value_rank": 3, **changes}}
    channels = {"mixer": {"kind": "rwkv_channel_mix", "hidden": 16}}
    named = {"first": {}, "later": later, "channels": channels}
    blocks = {name: {**BLOCK, **named[name]} for name in dict.fromkeys(layers)}
    stack = {"layers": [{"use": name} for name in layers], "block": BLOCK, "blocks": blocks}
    return gpt2(decoder=stack, position={"kind": "none"})


def test_layers_find_the_values_of_the_first() -> None:
    model = rwkv("first", "channels", "later", "channels", "later")
    assert [block.mixer.kind for block in model.decoder.layer_blocks()] == [
        "rwkv7", "rwkv_channel_mix", "rwkv7", "rwkv_channel_mix", "rwkv7",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("layers", "changes"), [(("later", "first"), {}), (("first", "later"), {"heads": 4})]
)
def test_values_of_a_first_layer_are_required(layers: tuple[str, ...], changes: dict[str, Any]) -> None:
    with pytest.raises(
        ValidationError, match="requires a layer before it with a mixer of kind rwkv7, as wide"
    ):
        rwkv(*layers, **changes)


def test_decays_keep_more_than_half_of_a_state() -> None:
    mixer: components.RWKV7 = built(FIRST)
    kept = mixer._decay(drawn(2, TOKENS, WIDTH) * 1e3).detach().exp()
    assert 0.5 < float(kept.min()) <= float(kept.max()) <= 1.0
