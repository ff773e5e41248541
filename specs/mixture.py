"""Mixtures of experts: many feed-forwards, and a router that chooses a few for each token."""

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from specs.attention import divisors
from specs.base import Component, Fault, Frame, PositiveFloat, Spec
from specs.descriptions import ValueDescriptions
from specs.feed_forward import FeedForward, TwoLayer
from specs.registry import register

Count = Annotated[int, Field(gt=0, le=2**16)]


class Groups(Spec):
    """Experts in equal groups, where each token uses only those of its best groups (DeepSeek)."""

    count: Count
    """Number of groups. It must divide `experts`."""
    top: Count
    """Number of groups open to each token: those with the highest scores."""
    best: Count = 1
    """Number of experts whose summed scores are the score of their group (DeepSeek-V2: 1, V3: 2)."""


class Router(Spec):
    """How a token's experts are chosen and weighted."""

    scores: Annotated[
        Literal["softmax", "sigmoid"],
        ValueDescriptions(
            {
                "softmax": "A softmax over all experts (Mixtral, Qwen).",
                "sigmoid": "A sigmoid of each expert's logit (DeepSeek-V3).",
            }
        ),
    ] = "softmax"
    """How the router's logits become scores."""
    normalize: bool = True
    """Whether the weights of the chosen experts are divided by their sum."""
    bias: bool = False
    """Whether the router's projection adds a bias (GPT-OSS)."""
    scale: PositiveFloat = 1.0
    """Factor on the weights of the chosen experts, after `normalize` (DeepSeek-V3: 2.5)."""
    groups: Groups | None = None
    """Restriction of each token to the experts of its best groups. Default: none; all experts compete."""
    correction: bool = False
    """Whether a stored, untrained number per expert is added to the scores when experts are chosen, but not when they are
    weighted (DeepSeek-V3)."""


@register("feed_forward")
class Mixture(Component):
    """Mixture of experts: the weighted sum of the feed-forwards that a router chooses per token (Shazeer et al., 2017).

    Every expert computes every token, so that no shape depends on data; those not chosen have weight 0.
    """

    kind: Literal["mixture"] = "mixture"
    experts: Count
    """Number of experts."""
    top_k: Count
    """Number of experts chosen for each token."""
    expert: FeedForward
    """Feed-forward network of each expert: `mlp` or `gated`."""
    router: Router = Router()
    """How the experts of a token are chosen and weighted."""
    shared: FeedForward | None = None
    """Feed-forward network that every token passes in addition to its experts (DeepSeek). Default: none."""
    shared_gate: bool = False
    """Whether the shared network's output is multiplied by the sigmoid of a linear score of the token (Qwen2-MoE)."""

    def faults(self, frame: Frame) -> Iterable[Fault]:
        if not isinstance(self.expert, TwoLayer):
            rule = "must be mlp or gated: all experts are one matrix product"
            yield Fault(("expert", "kind"), rule, self.expert.kind, "mlp or gated would work")
        yield from (fault.under("expert") for fault in self.expert.faults(frame))
        if self.shared is not None:
            yield from (fault.under("shared") for fault in self.shared.faults(frame))
        elif self.shared_gate:
            rule = "weights a shared feed-forward, and there is none"
            yield Fault(("shared_gate",), rule, True, "remove it, or add shared:")
        if self.experts == 1 and self.router.scores == "softmax":
            rule = (
                "must be at least 2: a softmax over a single expert is 1 whatever its score, "
                "so that the router learns nothing"
            )
            remedy = "Give two experts or more, or use the expert itself as the feed_forward."
            yield Fault(("experts",), rule, 1, remedy)
            return
        if self.top_k > self.experts:
            rule = f"must not exceed experts, which is {self.experts}"
            yield Fault(("top_k",), rule, self.top_k, f"1 to {self.experts} would work")
        elif self.router.groups is not None:
            yield from (fault.under("router", "groups") for fault in self._group_faults(self.router.groups))
        if self.top_k == 1 and self.router.normalize:
            rule = (
                "makes the weight of a single expert 1 whatever its score, so that the router learns nothing"
            )
            yield Fault(("router", "normalize"), rule, True, "set normalize: false, or top_k: 2 or more")

    def _group_faults(self, groups: Groups) -> Iterable[Fault]:
        if self.experts % groups.count:
            rule = f"must divide experts, which is {self.experts}"
            yield Fault(("count",), rule, groups.count, f"counts that divide it: {divisors(self.experts)}")
            return
        size = self.experts // groups.count
        if groups.top > groups.count:
            rule = f"must not exceed count, which is {groups.count}"
            yield Fault(("top",), rule, groups.top, f"1 to {groups.count} would work")
        elif groups.top * size < self.top_k:
            rule = f"must leave at least top_k experts, which is {self.top_k}, and a group has {size}"
            yield Fault(("top",), rule, groups.top, f"{-(-self.top_k // size)} or more would work")
        if groups.best > size:
            rule = f"must not exceed the experts of a group, which are {size}"
            yield Fault(("best",), rule, groups.best, f"1 to {size} would work")
