"""Linear attention: its decays, its state, padding, and retention as the paper of RetNet has it."""

from __future__ import annotations

from typing import Any, Literal

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers.models.minimax.configuration_minimax import MiniMaxConfig
from transformers.models.minimax.modeling_minimax import MiniMaxLightningAttention

from specs.base.base import Component
from specs.base.errors import PluginError
from specs.kinds.linear_attention import LinearAttention, OutputNorm, Retention, Slopes
from specs.kinds.norm import RMSNorm
from specs.language.load import load
from tests.zoo.components.contexts import mixer_context
from zoo.checks.degenerate import why_insensitive
from zoo.components.decay import fixed_decays, log_decays
from zoo.context import LayerContext
from zoo.registry import build_component

WIDTH = 12
CONTEXT = LayerContext(WIDTH, None, causal=True, cross=False, layers=4, layer=1)
LIGHTNING = LinearAttention(heads=3, key_width=4, value_width=5)
RETENTION = LinearAttention(
    heads=3, key_width=4, value_width=8, activation="identity", decay=Retention(), gate="silu",
    output_norm=OutputNorm(norm=RMSNorm(weight=False), over="head"),
)  # fmt: skip


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def built(spec: LinearAttention) -> Any:
    mixer = build_component(spec, CONTEXT)
    for place, parameter in enumerate(mixer.parameters()):
        nn.init.normal_(parameter, 0.0, 0.5, generator=torch.Generator().manual_seed(place))
    return mixer


# ---------------------------------------------------------------------------------------------------------- decays


@pytest.mark.parametrize("heads", [1, 3, 8])
@pytest.mark.parametrize(("layer", "layers"), [(0, 1), (0, 5), (3, 5), (4, 5)])
def test_slopes_are_those_of_the_reference(heads: int, layer: int, layers: int) -> None:
    config = MiniMaxConfig(hidden_size=8 * heads, num_attention_heads=heads, num_hidden_layers=layers,
                           layer_types=["linear_attention"] * layers)  # fmt: skip
    expected = MiniMaxLightningAttention(config, layer).slope_rate.flatten()
    assert torch.equal(-torch.tensor(log_decays(Slopes(), heads, layer, layers)), expected)


def test_the_decays_of_retention_are_those_of_every_layer() -> None:
    decays = [torch.tensor(log_decays(Retention(), 8, layer, 6)).exp() for layer in (0, 5)]
    assert torch.equal(*decays)
    torch.testing.assert_close(decays[0], 1 - 2.0 ** (-5 - torch.arange(8)))


class _Unknown(Component):
    kind: Literal["unknown"] = "unknown"


def test_a_decay_that_nothing_computes_is_refused() -> None:
    with pytest.raises(
        PluginError, match=r"'unknown' has no implementation\n.*zoo.components.decay.fixed_decays"
    ):
        fixed_decays(_Unknown(), 1, 0, 1)


def test_decays_are_neither_trained_nor_stored() -> None:
    assert {*built(LIGHTNING).state_dict()} == {
        f"{part}.weight" for part in ("query", "key", "value", "gate", "norm", "output")
    }


# ----------------------------------------------------------------------------------------------------------- state


@pytest.mark.parametrize("spec", [LIGHTNING, RETENTION], ids=["lightning", "retention"])
def test_one_token_at_a_time_and_pieces_leave_the_state_of_the_whole(spec: LinearAttention) -> None:
    mixer, x = built(spec), drawn(2, 150, WIDTH)
    whole, last = mixer(x, mixer_context(), None)
    assert [tuple(each.shape) for each in last] == [each.shape(2, 150) for each in mixer.state]
    for ends in ([*range(1, 151)], [1, 65, 66, 140, 150]):
        pieces, state, start = [], None, 0
        for end in ends:
            piece, state = mixer(x[:, start:end], mixer_context(), state)
            pieces.append(piece)
            start = end
        torch.testing.assert_close(torch.cat(pieces, 1), whole, atol=2e-5, rtol=2e-5)
        torch.testing.assert_close(state, last, atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("spec", [LIGHTNING, RETENTION], ids=["lightning", "retention"])
def test_padding_anywhere_changes_nothing(spec: LinearAttention) -> None:
    mixer, x = built(spec), drawn(1, 90, WIDTH)
    real = (torch.rand(1, 90, generator=torch.Generator().manual_seed(3)) > 0.3).long()
    kept = real[0].bool()
    padded, last = mixer(x, mixer_context(real), None)
    alone, expected = mixer(x[:, kept], mixer_context(), None)
    torch.testing.assert_close(padded[:, kept], alone, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(last, expected, atol=1e-5, rtol=1e-5)


def test_half_precision_keeps_sums_over_many_tokens_in_range() -> None:
    mixer = built(LIGHTNING.model_copy(update={"activation": "identity"})).half()
    y, _ = mixer(40 * drawn(1, 500, WIDTH).half(), mixer_context(), None)
    assert y.dtype == torch.float16
    assert y.isfinite().all()


@pytest.mark.parametrize(("over", "narrow"), [("head", True), ("width", False)])
def test_outputs_of_which_a_norm_keeps_only_signs_are_not_checked(over: str, narrow: bool) -> None:
    mixer = (
        f"{{kind: linear_attention, heads: 2, key_width: 4, value_width: 2, output_norm: {{over: {over}}}}}"
    )
    changes = ["decoder.block.attention=null", "position.kind=none", f"decoder.block.mixer={mixer}"]
    assert why_insensitive(load("tiny-gpt", changes)).startswith("a normalized vector of width 2") == narrow


# ------------------------------------------------------------------------------------------------------- retention


def retained(mixer: Any, x: Tensor) -> Tensor:
    """Multi-scale retention in its recurrent form (Sun et al., 2023, equations 3, 6 and 8) without the rotation of queries and
    keys: S_n = gamma S_(n-1) + K_n^T V_n, Q_n S_n for each head, a norm of each head, and a swish gate.

    The factor of the keys, key_width ** -0.5, is taken to be in their matrix.
    """
    heads = []
    for head in range(3):
        query, key, value = (
            x @ part.weight.T.chunk(3, 1)[head] for part in (mixer.query, mixer.key, mixer.value)
        )
        gamma, state, outputs = 1 - 2.0 ** (-5 - head), torch.zeros(len(x), 4, 8, dtype=x.dtype), []
        for n in range(x.shape[1]):
            state = gamma * state + key[:, n, :, None] * value[:, n, None, :]
            outputs.append((query[:, n, None, :] @ state)[:, 0])
        output = torch.stack(outputs, 1)
        heads.append(output / (output.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt())
    return F.silu(x @ mixer.gate.weight.T) * torch.cat(heads, -1) @ mixer.output.weight.T


def test_retention() -> None:
    mixer, x = built(RETENTION).double(), drawn(2, 100, WIDTH).double()
    mixed, _ = mixer(x, mixer_context(), None)
    torch.testing.assert_close(mixed, retained(mixer, x), atol=1e-6, rtol=1e-6)
