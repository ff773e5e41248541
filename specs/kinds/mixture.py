"""Mixtures of experts: many feed-forwards, and a router that selects a few per token."""

from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from specs.base.base import Component, Fault, OmitDefault, PositiveFloat, RuleContext, Spec
from specs.base.descriptions import ValueDescriptions
from specs.base.registry import register
from specs.base.words import PartContext
from specs.kinds.attention import divisors
from specs.kinds.feed_forward import FeedForward, TwoLayer
from specs.kinds.norm import Norm

Count = Annotated[int, Field(gt=0, le=2**16)]


class Groups(Spec):
    """Routing limited to the best groups of experts per token (DeepSeek)."""

    count: Count
    """Number of groups. It must divide `experts`."""
    top: Count
    """Number of groups selected per token, by score."""
    group_score_top_k: Count = 1
    """Number of top experts whose scores are summed to the score of their group (DeepSeek-V2: 1, V3: 2)."""


class Router(Spec):
    """Selection and weighting of the experts of a token."""

    scores: Annotated[
        Literal["softmax", "sigmoid", "sparse_mixer"],
        ValueDescriptions(
            {
                "softmax": "A softmax over all experts (Mixtral, Qwen).",
                "sigmoid": "A sigmoid of each expert's logit (DeepSeek-V3).",
                "sparse_mixer": "A softmax over the experts with lower logits that are at most 2 % lower (Phi-3.5-MoE).",
            }
        ),
    ] = "softmax"
    """Function from the router's logits to scores."""
    normalize: bool = True
    """Whether the weights of the chosen experts are divided by their sum."""
    bias: bool = False
    """Whether the router's projection adds a bias (GPT-OSS)."""
    scale: PositiveFloat = 1.0
    """Factor on the weights of the chosen experts, after `normalize` (DeepSeek-V3: 2.5)."""
    groups: Groups | None = None
    """Restriction of each token to the experts of its best groups. Default: no restriction."""
    norm: Annotated[Norm | None, OmitDefault()] = None
    """Norm of the router's input. Default: none."""
    input_scale: Annotated[PositiveFloat | Literal["inverse_sqrt_d_model"] | None, OmitDefault()] = None
    """Factor on the router's input, after the norm: a number, or `inverse_sqrt_d_model` (Gemma 4). Default: 1."""
    expert_scales: Annotated[bool, OmitDefault()] = False
    """Whether the weight of each chosen expert is multiplied by a trained factor of that expert (Gemma 4)."""
    weighs: Annotated[
        Literal["output", "input"],
        ValueDescriptions(
            {
                "output": "The output of the expert, as in most mixtures.",
                "input": "The input of the expert (Llama 4).",
            }
        ),
        OmitDefault(),
    ] = "output"
    """The vector of a chosen expert that its weight multiplies."""
    score_correction_bias: bool = False
    """Whether a stored, untrained number per expert is added to the scores when experts are chosen, but not when they are
    weighted (DeepSeek-V3)."""


@register("feed_forward")
class Mixture(Component):
    """Mixture of experts: the weighted sum of the feed-forwards that a router selects per token (Shazeer et al., 2017).

    Only the selected experts compute a token.
    """

    kind: Literal["mixture"] = "mixture"
    title: ClassVar[str] = "Mixture of experts"
    experts: Count
    """Number of experts."""
    top_k: Count
    """Number of experts selected per token."""
    expert: FeedForward
    """Feed-forward network of each expert: `mlp` or `gated`."""
    norm: Annotated[Norm | None, OmitDefault()] = None
    """Norm of the experts' input, which the router does not read. Default: none."""
    router: Router = Router()
    """Selection and weighting of the experts of a token."""
    shared: FeedForward | None = None
    """Feed-forward network applied to every token in addition to its experts (DeepSeek). Default: none."""
    shared_gate: bool = False
    """Whether the shared network's output is multiplied by the sigmoid of a linear score of the token (Qwen2-MoE)."""

    def details(self, context: PartContext) -> list[str]:
        router = self.router
        details = [f"{self.top_k} of {self.experts:,} experts", self.expert.brief]
        if self.shared is not None:
            details.append(f"shared: {self.shared.brief}{', gated' if self.shared_gate else ''}")
        correction = " with correction" if router.score_correction_bias else ""
        weighing = ", weighs inputs" if router.weighs == "input" else ""
        details.append(f"{router.scores.replace('_', ' ')} router{correction}{weighing}")
        if router.groups is not None:
            details.append(f"{router.groups.top} of {router.groups.count} groups")
        return details

    @property
    def routed_experts(self) -> tuple[int, int]:
        return self.top_k, self.experts

    def branch_details(self, context: PartContext) -> list[str]:
        return self.details(context)

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        if not isinstance(self.expert, TwoLayer):
            rule = "must be mlp or gated, because the matrices of all experts are one tensor"
            yield Fault(("expert", "kind"), rule, self.expert.kind, "Use mlp or gated.")
        elif self.expert.activation == "xielu":
            rule = "must be without parameters in experts, which share one activation"
            yield Fault(("expert", "activation"), rule, self.expert.activation, "Use relu2 or silu.")
        yield from (fault.under("expert") for fault in self.expert.faults(context))
        for path, norm in ((("norm",), self.norm), (("router", "norm"), self.router.norm)):
            if norm is not None:
                yield from (fault.under(*path) for fault in norm.faults(context))
        if self.shared is not None:
            yield from (fault.under("shared") for fault in self.shared.faults(context))
        elif self.shared_gate:
            rule = "requires a shared feed-forward"
            yield Fault(("shared_gate",), rule, True, "Remove it, or add shared.")
        if self.top_k > self.experts:
            rule = f"must not exceed experts, which is {self.experts}"
            yield Fault(("top_k",), rule, self.top_k, f"Use 1 to {self.experts}.")
        elif self.router.groups is not None:
            yield from (fault.under("router", "groups") for fault in self._group_faults(self.router.groups))

    def _group_faults(self, groups: Groups) -> Iterable[Fault]:
        if self.experts % groups.count:
            rule = f"must divide experts, which is {self.experts}"
            yield Fault(("count",), rule, groups.count, f"Use a divisor: {divisors(self.experts)}.")
            return
        size = self.experts // groups.count
        if groups.top > groups.count:
            rule = f"must not exceed count, which is {groups.count}"
            yield Fault(("top",), rule, groups.top, f"Use 1 to {groups.count}.")
        elif groups.top * size < self.top_k:
            rule = f"must leave at least top_k experts, which is {self.top_k}, and a group has {size}"
            yield Fault(("top",), rule, groups.top, f"Use {-(-self.top_k // size)} or more.")
        if groups.group_score_top_k > size:
            rule = f"must not exceed the number of experts per group, which is {size}"
            yield Fault(("group_score_top_k",), rule, groups.group_score_top_k, f"Use 1 to {size}.")
