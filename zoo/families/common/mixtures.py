"""Mixtures of experts: their fields, the layers without one, and the tensors of the experts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from specs.kinds.block import BlockParts
from specs.kinds.feed_forward import TwoLayer
from specs.kinds.mixture import Groups, Mixture
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.held import also_named
from zoo.families.common.layers import LayerVariation
from zoo.families.common.llama_like import BLOCK, LAYER, LlamaFields
from zoo.families.common.template import Data, Field, FieldContext, Template, UnfitError, read, write
from zoo.families.common.tensors import Rule, same

TRAINING = (
    "output_router_logits",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "aux_loss_alpha",
    "seq_aux",
)
"""Fields that say how routers are trained, or whether their scores are given out."""

_FEED_FORWARD = f"{BLOCK}feed_forward"


class DenseLayers(LayerVariation):
    """The layers with an ordinary feed-forward; where all have one, what a mixture would be is not written."""

    name = "dense"

    def __init__(self, feed_forward: Template) -> None:
        self.differs = {"feed_forward": feed_forward}

    def holds(self, block: BlockParts, index: int) -> bool:
        return not isinstance(block.feed_forward, Mixture)


class FirstLayers(DenseLayers):
    """The first layers, which have an ordinary feed-forward."""

    def __init__(self, feed_forward: Template, default: int, name: str = "first_k_dense_replace") -> None:
        super().__init__(feed_forward)
        self.first = f.Int(name, default=default)

    def read(self, config: Config, depth: int) -> list[bool]:
        first = self.first.read(config)
        return [layer < first for layer in range(depth)]

    def write(self, where: Sequence[bool], context: FieldContext) -> Data:
        return self.first.write(where.index(False) if False in where else len(where), context)


class CountedMixtures(DenseLayers):
    """The layers without a mixture of a stack whose ``count``, a field, says which layers have one: ``mixtures`` gives these for a
    count and a depth."""

    def __init__(
        self, feed_forward: Template, count: f.Int, mixtures: Callable[[int, int], list[bool]]
    ) -> None:
        super().__init__(feed_forward)
        self.count, self.mixtures = count, mixtures

    def read(self, config: Config, depth: int) -> list[bool]:
        return [not mixture for mixture in self.mixtures(self.count.read(config), depth)]

    def write(self, where: Sequence[bool], context: FieldContext) -> Data:
        for count in range(len(where) + 2):
            if self.mixtures(count, len(where)) == [not dense for dense in where]:
                return self.count.write(count, context)
        raise UnfitError("mixtures in other layers than every n-th")


class ExpertGroups(Field):
    """The groups of experts, where there are several; ``score_top_k`` experts score a group, ``name`` is the field of the count."""

    def __init__(self, count: int | None, top: int | None, score_top_k: int, name: str = "n_group") -> None:
        self.count, self.top, self.score_top_k, self.name = count, top, score_top_k, name

    def read(self, config: Config) -> Data | None:
        count = config.int(self.name, default=self.count)
        top = config.int("topk_group", default=self.top)
        if count is None:
            config.refuse(self.name, "must be a number: 1 for experts that are not grouped")
        if top is None:
            config.refuse("topk_group", f"must be a number: {self.name} for groups that are all open")
        return None if count == 1 else {"count": count, "top": top, "group_score_top_k": self.score_top_k}

    def write(self, value: Groups | None, context: FieldContext) -> Data:
        groups = value or Groups(count=1, top=1)
        return {self.name: groups.count, "topk_group": groups.top}


class Shared(Field):
    """The feed-forward that every token passes, as wide as a number of experts together; with 0, there is none."""

    component = TwoLayer | None

    def __init__(
        self, feed_forward: dict[str, Template], hidden: f.Int, name: str, *, default: Template
    ) -> None:
        self.count = f.Int(name, default=default)
        width = f.Derived(lambda config: self.count.read(config) * hidden.read(config))
        self.part = {**feed_forward, "hidden": width}

    def read(self, config: Config) -> Data | None:
        return read(self.part, config) if self.count.read(config) else None

    def write(self, value: TwoLayer | None, context: FieldContext) -> Data:
        if value is None:
            return self.count.write(0, context)
        mixture: Any = context.block.feed_forward
        if value.hidden % mixture.expert.hidden:
            raise UnfitError("a mixture without a shared feed-forward as wide as some experts together")
        return {
            **write(self.part, value, context),
            **self.count.write(value.hidden // mixture.expert.hidden, context),
        }


def mixture(
    experts: int | Field, top_k: int | Field, expert: Template, **more: Template
) -> dict[str, Template]:
    """A mixture; ``experts`` and ``top_k`` may be the defaults of their usual fields."""
    if isinstance(experts, int):
        experts = f.Int("num_local_experts", "num_experts", default=experts)
    if isinstance(top_k, int):
        top_k = f.Int("num_experts_per_tok", default=top_k)
    return {"kind": "mixture", "experts": experts, "top_k": top_k, "expert": expert, **more}


def sigmoid_scores(
    scale: f.Float, normalize: Template = True, groups: ExpertGroups | None = None
) -> dict[str, Template]:
    """A router of sigmoids, with a bias of each expert for the choice alone."""
    router: dict[str, Template] = {"scores": "sigmoid", "score_correction_bias": True}
    router |= {"normalize": normalize, "scale": scale}
    return router if groups is None else {**router, "groups": groups}


def sigmoid_router(groups: ExpertGroups, *, normalize: bool, scale: float) -> dict[str, Template]:
    """DeepSeek-V3's router; the arguments are a family's defaults."""
    factor, normalizes = (
        f.Float("routed_scaling_factor", default=scale),
        f.Bool("norm_topk_prob", default=normalize),
    )
    return sigmoid_scores(factor, normalizes, groups)


def sigmoid_mixture(
    fields: LlamaFields,
    router: Template,
    *,
    experts: Template,
    top_k: Template,
    hidden: int,
    shared: Template,
    names: tuple[str, str] = ("n_routed_experts", "n_shared_experts"),
) -> Template:
    """DeepSeek-V3's mixture with a ``router``; the others are a family's defaults, and ``names`` the fields of the numbers of experts."""
    routed, common = names
    width = f.Int("moe_intermediate_size", default=hidden)
    return mixture(
        f.Int(routed, "num_local_experts", default=experts),
        f.Int("num_experts_per_tok", default=top_k),
        fields.feed_forward(hidden=width),
        shared=Shared(fields.feed_forward(), width, common, default=shared),
        router=router,
    )


def experts(mixture: str, gate: str, up: str, down: str, router: str = "gate") -> tuple[Rule, ...]:
    """The router and the experts, whose matrices are each a tensor; ``mixture`` is the name of their module."""
    expert = f"{LAYER}{mixture}.experts.{{expert}}"
    return (
        same(f"{LAYER}{mixture}.{router}.weight", f"{_FEED_FORWARD}.router.weight"),
        same(f"{expert}.{gate}.weight", f"{_FEED_FORWARD}.experts.gate.weight"),
        same(f"{expert}.{up}.weight", f"{_FEED_FORWARD}.experts.up.weight"),
        same(f"{expert}.{down}.weight", f"{_FEED_FORWARD}.experts.down.weight"),
    )


MIXTRAL_MODULE = ("block_sparse_moe", "mlp")
"""The name of Mixtral's mixture, and the one that transformers 5 gives it when it loads a checkpoint."""

MIXTRAL_EXPERTS = also_named(experts("block_sparse_moe", "w1", "w3", "w2"), MIXTRAL_MODULE)
"""Experts with the names of Mixtral (MiniMax, Kimi)."""

EXPERTS = experts("mlp", "gate_proj", "up_proj", "down_proj")
"""Experts with the names of an ordinary feed-forward (Qwen, DeepSeek)."""


CORRECTION = same(f"{LAYER}mlp.gate.e_score_correction_bias", f"{_FEED_FORWARD}.router.score_correction_bias")
"""The bias that DeepSeek-V3 adds to the scores when it chooses experts."""


def shared(stored: str) -> dict[str, str]:
    """The modules of the feed-forward that every token passes."""
    return {f"mlp.{stored}.{part}_proj": f"feed_forward.shared.{part}" for part in ("gate", "up", "down")}
