"""Mixtures of experts against transformers."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import (
    DeepseekV2Config,
    DeepseekV3Config,
    GptOssConfig,
    Llama4TextConfig,
    MixtralConfig,
    Qwen2MoeConfig,
    Qwen3MoeConfig,
)
from transformers.models.deepseek_v2.modeling_deepseek_v2 import DeepseekV2Moe
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3MoE
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssMLP
from transformers.models.llama4.modeling_llama4 import Llama4TextMoe
from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock
from transformers.models.phimoe.modeling_phimoe import sparsemixer
from transformers.models.qwen2_moe.modeling_qwen2_moe import Qwen2MoeSparseMoeBlock
from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeSparseMoeBlock

from specs.kinds.mixture import Mixture
from tests.parity.reference import assert_close, redraw
from tests.thinned import one_in
from zoo import functional
from zoo.context import BuildContext
from zoo.registry import build_component

WIDTH, HIDDEN = 12, 10
SWIGLU = {"kind": "gated", "hidden": HIDDEN, "activation": "silu", "bias": False}
SIZES = {"hidden_size": WIDTH, "moe_intermediate_size": HIDDEN}
ROUTED = {"num_experts_per_tok": 3, "n_shared_experts": 2, "routed_scaling_factor": 1.7}
DEEPSEEK = {**SIZES, **ROUTED, "n_routed_experts": 8, "num_attention_heads": 4}
SHARED = {**SWIGLU, "hidden": 2 * HIDDEN}


def mixture(experts: int, top_k: int, **parts: object) -> Mixture:
    return Mixture.model_validate({"experts": experts, "top_k": top_k, "expert": SWIGLU, **parts})


CASES: dict[str, tuple[type, Any, Mixture]] = {
    "mixtral": (
        MixtralSparseMoeBlock,
        MixtralConfig(hidden_size=WIDTH, intermediate_size=HIDDEN, num_local_experts=5, num_experts_per_tok=2),
        mixture(5, 2),
    ),
    "qwen3": (
        Qwen3MoeSparseMoeBlock,
        Qwen3MoeConfig(**SIZES, num_experts=6, num_experts_per_tok=3, norm_topk_prob=True),
        mixture(6, 3),
    ),
    "qwen3, not normalised": (
        Qwen3MoeSparseMoeBlock,
        Qwen3MoeConfig(**SIZES, num_experts=6, num_experts_per_tok=1, norm_topk_prob=False),
        mixture(6, 1, router={"normalize": False}),
    ),
    "qwen2": (
        Qwen2MoeSparseMoeBlock,
        Qwen2MoeConfig(
            **SIZES, num_experts=6, num_experts_per_tok=2, norm_topk_prob=False, shared_expert_intermediate_size=7
        ),
        mixture(6, 2, router={"normalize": False}, shared={**SWIGLU, "hidden": 7}, shared_gate=True),
    ),
    "gpt-oss": (
        GptOssMLP,
        GptOssConfig(hidden_size=WIDTH, intermediate_size=HIDDEN, num_local_experts=6, num_experts_per_tok=2,
                     swiglu_limit=1.0),
        mixture(6, 2, router={"bias": True}, expert={"kind": "gated", "hidden": HIDDEN, "activation": "quick_gelu",
                                                     "limit": 1.0, "up_offset": 1.0}),
    ),
    "llama 4": (
        Llama4TextMoe,
        Llama4TextConfig(hidden_size=WIDTH, intermediate_size=HIDDEN, num_local_experts=5, num_experts_per_tok=2),
        mixture(5, 2, router={"scores": "sigmoid", "normalize": False, "weighs": "input"}, shared=SWIGLU),
    ),
    "deepseek-v2, greedy": (
        DeepseekV2Moe,
        DeepseekV2Config(**DEEPSEEK, topk_method="greedy"),
        mixture(8, 3, router={"normalize": False, "scale": 1.7}, shared=SHARED),
    ),
    "deepseek-v2, groups": (
        DeepseekV2Moe,
        DeepseekV2Config(**DEEPSEEK, topk_method="group_limited_greedy", n_group=4, topk_group=2),
        mixture(8, 3, router={"normalize": False, "scale": 1.7, "groups": {"count": 4, "top": 2}}, shared=SHARED),
    ),
    "deepseek-v3": (
        DeepseekV3MoE,
        DeepseekV3Config(**DEEPSEEK, n_group=4, topk_group=2, norm_topk_prob=True),
        mixture(8, 3, router={"scores": "sigmoid", "scale": 1.7, "groups": {"count": 4, "top": 2, "group_score_top_k": 2},
                              "score_correction_bias": True}, shared=SHARED),
    ),
}  # fmt: skip


def take(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    """Give our tensors the values of a reference's, whatever its layout."""
    own = dict(ours)

    def put(name: str, value: Tensor) -> None:
        assert own[name].shape == value.shape, name
        own.pop(name).copy_(value)

    router = next(prefix for prefix in ("gate", "router") if f"{prefix}.weight" in theirs)
    put("router.weight", theirs[f"{router}.weight"])
    if f"{router}.bias" in theirs:
        put("router.bias", theirs[f"{router}.bias"])
    if f"{router}.e_score_correction_bias" in theirs:
        put("router.score_correction_bias", theirs[f"{router}.e_score_correction_bias"])
    fused, down = theirs["experts.gate_up_proj"], theirs["experts.down_proj"]
    if "experts.gate_up_proj_bias" in theirs:  # d_in x d_out, gate and up in turn
        bias = theirs["experts.gate_up_proj_bias"]
        put("experts.gate.weight", fused[..., 0::2].transpose(1, 2))
        put("experts.up.weight", fused[..., 1::2].transpose(1, 2))
        put("experts.down.weight", down.transpose(1, 2))
        put("experts.gate.bias", bias[..., 0::2])
        put("experts.up.bias", bias[..., 1::2])
        put("experts.down.bias", theirs["experts.down_proj_bias"])
    elif "shared_expert.gate_proj.weight" in theirs and router == "router":  # d_in x d_out
        gate, up = fused.mT.chunk(2, 1)
        put("experts.gate.weight", gate)
        put("experts.up.weight", up)
        put("experts.down.weight", down.mT)
    else:
        gate, up = fused.chunk(2, 1)
        put("experts.gate.weight", gate)
        put("experts.up.weight", up)
        put("experts.down.weight", down)
    for prefix in ("shared_expert", "shared_experts"):
        for part in ("gate", "up", "down"):
            if f"{prefix}.{part}_proj.weight" in theirs:
                put(f"shared.{part}.weight", theirs[f"{prefix}.{part}_proj.weight"])
    if "shared_expert_gate.weight" in theirs:
        put("shared_gate.weight", theirs["shared_expert_gate.weight"])
    assert not own


def gradients(module: nn.Module, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """The gradients of the input and of every parameter, for one draw of what the loss weighs."""
    x = x.clone().requires_grad_()
    result = module(x)
    result = result[0] if isinstance(result, tuple) else result
    names, parameters = zip(*module.named_parameters(), strict=True)
    weighed = torch.randn(result.shape, generator=torch.Generator().manual_seed(3))
    of_x, *others = torch.autograd.grad((result * weighed).sum(), [x, *parameters])
    return of_x, dict(zip(names, others, strict=True))


def compare_gradients(ours: nn.Module, reference: nn.Module, x: Tensor) -> None:
    """Compare the gradients of the input and of every parameter, relative to the largest of each tensor."""
    of_x, found = gradients(ours, x)
    expected_of_x, theirs = gradients(reference, x)
    laid_out = {name: torch.empty_like(value) for name, value in found.items()}
    take(laid_out, theirs)
    for name, got, expected in (("x", of_x, expected_of_x), *((n, found[n], laid_out[n]) for n in found)):
        assert (got - expected).abs().max() <= 1e-5 * expected.abs().max(), name
        assert expected.abs().max() > 0, name


@one_in(3)
@pytest.mark.parametrize("name", CASES)
@torch.no_grad()
def test_mixtures(name):
    reference_class, config, spec = CASES[name]
    config._experts_implementation = "eager"
    reference = reference_class(config).eval()
    redraw(reference, 1)
    generator = torch.Generator().manual_seed(2)
    for buffer in reference.buffers():
        buffer.normal_(0.0, 0.05, generator=generator)
    ours: Any = build_component(spec, BuildContext(WIDTH, None, causal=True, cross=False)).eval()
    take(ours.state_dict(), reference.state_dict())
    x = torch.randn(3, 20, WIDTH, generator=generator)
    theirs = reference(x)
    theirs = theirs[0] if isinstance(theirs, tuple) else theirs
    assert_close(ours(x), theirs.reshape(x.shape))
    with torch.enable_grad():
        compare_gradients(ours, reference, x)
    weights, experts = ours.router.choose(ours.router(x))
    assert weights.shape == experts.shape == (3, 20, spec.top_k)
    assert set(experts.flatten().tolist()) == set(range(spec.experts))  # every expert has a part in it


@torch.no_grad()
def test_experts_are_chosen_by_logits_whose_sigmoids_round_to_one() -> None:
    reference_class, config, spec = CASES["llama 4"]
    config._experts_implementation = "eager"
    reference = reference_class(config).eval()
    redraw(reference, 1)
    reference.router.weight *= 300.0
    ours: Any = build_component(spec, BuildContext(WIDTH, None, causal=True, cross=False)).eval()
    take(ours.state_dict(), reference.state_dict())
    x = torch.randn(3, 20, WIDTH, generator=torch.Generator().manual_seed(2))
    scores = torch.sigmoid(ours.router(x)).sort(-1, descending=True)[0]
    tied = scores[..., spec.top_k - 1] == scores[..., spec.top_k]
    assert tied.sum() > 10
    theirs, logits = reference(x)
    assert_close(ours(x), theirs.reshape(x.shape))
    assert torch.equal(ours.router.choose(ours.router(x))[1].flatten(0, 1), logits.topk(spec.top_k)[1])


@pytest.mark.parametrize(
    ("router", "logits", "experts"),
    [
        ({"score_correction_bias": True}, [9.0, 2.0, 8.0, 2.0], [1, 3]),  # 1.00 1.38 1.00 1.38
        ({"groups": {"count": 2, "top": 1, "group_score_top_k": 2}}, [40.0, -2.0, 2.0, 2.0], [2, 3]),
    ],
    ids=["corrected", "summed"],
)
def test_experts_are_chosen_by_scores_where_these_are_corrected_or_summed(router, logits, experts):
    spec = mixture(4, 2, router={"scores": "sigmoid", **router})
    built: Any = build_component(spec, BuildContext(WIDTH, None, causal=True, cross=False)).router
    if built.score_correction_bias is not None:
        built.score_correction_bias = torch.tensor([0.0, 0.5, 0.0, 0.5])
    assert built.choose(torch.tensor([[logits]]))[1].sort(-1)[0].tolist() == [[experts]]


@pytest.mark.parametrize("spread", [0.02, 1.0, 30.0])
def test_weights_of_sparse_mixer(spread):
    logits = spread * torch.randn(200, 16, generator=torch.Generator().manual_seed(1)) + 1.0
    weights, chosen = sparsemixer(logits, 0.01, training=False)
    ours = functional.sparse_mixer_scores(logits)
    assert torch.equal(ours.new_zeros(200, 16).scatter(-1, chosen, 1.0), functional.among_largest(logits, 2))
    torch.testing.assert_close(ours.gather(-1, chosen), weights, atol=1e-6, rtol=1e-5)
