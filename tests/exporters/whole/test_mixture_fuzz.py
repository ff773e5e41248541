"""Random narrow mixtures of experts are exported and verified, whatever the routing, the target and the precision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exporters.export import export
from exporters.steps.options import ExportOptions
from specs.model.model import Model
from tests.exporters.mixtures import MLP, OSS, SWIGLU, decoder, encoder, encoder_decoder, mixture
from zoo.components.router import Router
from zoo.core.initialization import Distribution


def peaked(patch: pytest.MonkeyPatch, std: float) -> None:
    """Draw routers with this standard deviation: where it is large, one expert has nearly all weight.

    Sigmoids that are all 1 would tie: of a width of 32, those of 1.0 and more do.
    """
    initial = Router.initial
    patch.setattr(
        Router,
        "initial",
        lambda self, leaf: initial(self, leaf) if leaf == "score_correction_bias" else Distribution(std=std),
    )


@st.composite
def routed(draw: st.DrawFn) -> dict[str, Any]:
    """A mixture with any routing."""
    experts = draw(st.sampled_from([2, 3, 8, 16, 64]))
    top_k = draw(st.integers(1, min(experts, 8)))
    router: dict[str, Any] = {
        "scores": draw(st.sampled_from(["softmax", "sigmoid"])),
        "score_correction_bias": draw(st.booleans()),
        "bias": draw(st.booleans()),
        "scale": draw(st.sampled_from([1.0, 0.5, 2.5])),
        "normalize": top_k > 1 and draw(st.booleans()),
    }
    count = draw(st.sampled_from([count for count in (1, 2, 4, 8) if experts % count == 0]))
    top = draw(st.integers(-(-top_k * count // experts), count))
    if draw(st.booleans()):
        best = draw(st.integers(1, min(2, experts // count)))
        router["groups"] = {"count": count, "top": top, "group_score_top_k": best}
    expert = draw(st.sampled_from([SWIGLU, OSS, MLP, {**SWIGLU, "activation": "gelu"}]))
    return mixture(expert, experts=experts, top_k=top_k, router=router)


@pytest.mark.slow
@settings(
    max_examples=12, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
@given(
    routed(), st.sampled_from([decoder, encoder, encoder_decoder]), st.sampled_from([None, 0.1, 0.3]),
    st.sampled_from(["cpu", "cpu", "portable", "cuda", "tensorrt"]), st.sampled_from(["fp32", "fp16", "bf16", "int8", "int4"]),
    st.integers(0, 99),
)  # fmt: skip
def test_a_random_mixture_is_verified(
    tmp_path_factory: pytest.TempPathFactory, feed_forward: dict[str, Any], make: Any, std: float | None,
    target: str, precision: str, seed: int,
) -> None:  # fmt: skip
    spec: Model = make(feed_forward)
    options = ExportOptions.of(target=target, precision=precision, seed=seed)
    with pytest.MonkeyPatch.context() as patch:
        if std is not None:
            peaked(patch, std)
        export(spec, tmp_path_factory.mktemp("fuzzed") / "x", options)


@pytest.mark.slow
def test_weights_below_the_normal_numbers_of_float16_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    peaked(monkeypatch, 1.0)
    spec = encoder_decoder(mixture(OSS, experts=2, top_k=2, router={"bias": True}))
    export(spec, tmp_path / "x", ExportOptions(target="cpu", precision="fp16", seed=5182))
