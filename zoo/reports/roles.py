"""The roles of a model's parameters, from the modules that hold them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from torch import nn

from specs.base.registry import kinds
from specs.model.stack import STACKS
from zoo.components.block import Block
from zoo.core.facts import ACTIVE_SHARE, KIND, PARAMETER_ROLE
from zoo.core.roles import ROLES
from zoo.reports.folding import Folded, once

_HEADS = {"head", *(f"{name}_head" for name in STACKS)}
_PARTS = {
    "attention": "attention",
    "cross_attention": "cross-attention",
    "mixer": "mixer",
    "convolution": "mixer",
    "feed_forward": "feed-forward",
    "first_feed_forward": "feed-forward",
}


@dataclass(frozen=True)
class RoleParameters:
    """The parameters of one role; ``active`` parameters process each token: of experts, only the selected ones."""

    name: str
    parameters: int
    active: int

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self)


@once
def roles(folded: Folded) -> list[RoleParameters]:
    """The roles of a model, in order; each parameter counts once, at its first holder."""
    counts = dict.fromkeys(ROLES, (0, 0))
    seen: set[int] = set()
    for role, share, path in folded_roles(folded):
        for weight in folded.model.get_submodule(path).parameters(recurse=False):
            if id(weight) not in seen:
                seen.add(id(weight))
                (total, active), size, copies = counts[role], weight.numel(), folded.copies(path)
                counts[role] = (total + size * copies, active + size * share[0] // share[1] * copies)
    return [RoleParameters(name, *count) for name, count in counts.items() if count[0]]


def active_parameters(folded: Folded) -> int:
    """The parameters that process each token: of experts, only the selected ones."""
    return sum(role.active for role in roles(folded))


def ties(folded: Folded) -> dict[str, str]:
    """Shared weights by name, with their first holders."""
    owners: dict[int, str] = {}
    tied: dict[str, str] = {}
    for path, module in folded.model.named_modules():
        for leaf, weight in module.named_parameters(recurse=False):
            name = f"{path}.{leaf}" if path else leaf
            if (owner := owners.setdefault(id(weight), name)) != name:
                names, holders = folded.originals(name), folded.originals(owner)
                tied |= zip(
                    names, holders if len(holders) == len(names) else holders * len(names), strict=True
                )
    return tied


@once
def folded_roles(folded: Folded) -> list[tuple[str, tuple[int, int], str]]:
    """The roles of the modules of a folded model, as :func:`module_roles` yields them."""
    return list(module_roles(folded.model))


def module_roles(
    module: nn.Module, role: str = "other", share: tuple[int, int] = (1, 1), path: str = ""
) -> Iterator[tuple[str, tuple[int, int], str]]:
    """The role of a module and its submodules, its active fraction, and its path."""
    own = PARAMETER_ROLE.of(module) or ("norms" if _is_norm(module) else role)
    met = ACTIVE_SHARE.of(module) or share
    yield own, met, path
    for name, child in module.named_children():
        part = _PARTS.get(name) if isinstance(module, Block) else "head" if name in _HEADS else None
        yield from module_roles(child, part or own, met, f"{path}.{name}" if path else name)


def _is_norm(module: nn.Module) -> bool:
    """Whether a module is a norm of PyTorch, or of a kind of norms, as plugins' are."""
    if isinstance(module, nn.LayerNorm | nn.RMSNorm):
        return True
    kind = KIND.of(module)
    return kind is not None and kind != "none" and kind in kinds("norm")
