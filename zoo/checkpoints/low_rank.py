"""The changes of a LoRA adapter by the tensors of a base, merged, and by the parameters of a model, for graphs that add their product."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from specs.model.model import Model
from zoo.checkpoints.matching import TensorLocation, match
from zoo.core.tensors import weight_tensors
from zoo.families.common.held import stacked_experts
from zoo.families.common.tensors import Tensors
from zoo.families.common.transforms import Transposed
from zoo.weights.files import TensorFiles
from zoo.weights.lora import BaseLayout, LoraAdapter
from zoo.weights.low_rank import LowRank, MergedTensor
from zoo.weights.source import WeightError
from zoo.weights.stacked_lora import StackedLowRank

_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")


@dataclass(frozen=True)
class LowRankPair:
    """The change of a weight W, out x in: (down up)^T; ``down``: in x rank, ``up``: rank x out, with the adapter's factor.

    Of stacked experts, all have an axis of experts first.
    """

    down: Tensor
    up: Tensor

    def change(self) -> Tensor:
        """The change of the weight, out x in."""
        return (self.down @ self.up).mT


def merged_files(
    adapter: LoraAdapter, files: TensorFiles, names: Tensors, model: nn.Module, spec: Model
) -> TensorFiles:
    """The tensors of a base with the changes of an adapter.  Raises as :meth:`LoraAdapter.merged`."""
    layout = _layout(files, names, model, spec)
    return replace(files, tensors=adapter.merged(files.tensors, names.plain, layout))


def _layout(files: TensorFiles, names: Tensors, model: nn.Module, spec: Model) -> BaseLayout:
    locations = match(files, names, model, spec).locations
    stored_in_columns = {
        id(stored)
        for location in locations.values()
        if isinstance(location.slot.transform, Transposed)
        for stored in location.stored
    }
    named = {id(stored): name for name, stored in files.tensors.items()}
    transposed = (name for stored, name in named.items() if stored in stored_in_columns)
    experts: dict[str, dict[int, tuple[str, ...]]] = {}
    aliases: dict[str, str] = {}
    for location in locations.values():
        held = tuple(named[id(own)] for own in location.stored)
        for name in location.slot.stored:
            aliases |= zip(location.slot.names(name), held, strict=False)
        if stacked := stacked_experts(location.slot, locations):
            for name in stacked.stored:
                experts.setdefault(name, {})[stacked.index] = held
    by_part = {name: tuple(parts[part] for part in sorted(parts)) for name, parts in experts.items()}
    return BaseLayout(frozenset(transposed), _shared(names, model, spec), by_part, aliases)


def _shared(names: Tensors, model: nn.Module, spec: Model) -> dict[str, tuple[str, ...]]:
    """The parameters of each tensor that a model reads in places of several kinds; layers that share one are of one kind."""
    shapes: dict[str, tuple[int, ...]] = {}
    uses: dict[int, list[str]] = {}
    for name, parameter in weight_tensors(model, remove_duplicate=False):
        shapes[name] = tuple(parameter.shape)
        uses.setdefault(id(parameter), []).append(name)
    table = names.table(spec, shapes)
    shared: dict[str, tuple[str, ...]] = {}
    for parameters in uses.values():
        if len({_NUMBER.sub("#", name) for name in parameters}) > 1:
            slots = filter(None, map(table.find, parameters))
            shared |= {stored: tuple(parameters) for slot in slots for stored in slot.stored}
    return shared


def low_rank_pairs(
    adapter: LoraAdapter, files: TensorFiles, names: Tensors, model: nn.Module, spec: Model
) -> dict[str, LowRankPair]:
    """The pair of each parameter that an adapter changes.

    Raises :class:`WeightError` where the adapter fits another base, replaces tensors, or changes one in a way that is no sum of a
    product and a low-rank product.
    """
    merged_files(adapter, files, names, model, spec)  # with all faults
    aliases = _layout(files, names, model, spec).aliases
    base = {alias: files.tensors[name] for alias, name in aliases.items()}
    base |= {names.plain(name): stored for name, stored in files.tensors.items()}
    for name, stored in adapter.replaced.items():
        # PEFT stores embeddings beside their change, whether they changed or not
        if not torch.equal(stored.read().float(), base[names.plain(name)].read().float()):
            raise _whole(adapter, f"replaces {name}")
    merged = merged_files(replace(adapter, replaced={}), files, names, model, spec)
    changes = {
        id(stored): stored.change for stored in merged.tensors.values() if isinstance(stored, MergedTensor)
    }
    pairs = {}
    matched = match(merged, names, model, spec)
    for name, location in matched.locations.items():
        changed = [changes.get(id(stored)) for stored in location.stored]
        if any(changed):
            made = [None if one is None else _pair(adapter, name, location, one) for one in changed]
            pairs[name] = made[0] if len(made) == 1 and made[0] else _of_experts(made)
    return pairs


def _of_experts(pairs: Sequence[LowRankPair | None]) -> LowRankPair:
    """The pairs of the matrices of experts as one, of their largest rank, with zeros for experts that do not change."""
    rank = max(pair.up.shape[0] for pair in pairs if pair)
    like = next(pair for pair in pairs if pair)
    zeros = LowRankPair(like.down[:, :0], like.up[:0])
    held = [pair or zeros for pair in pairs]
    return LowRankPair(
        torch.stack([F.pad(pair.down, (0, rank - pair.down.shape[1])) for pair in held]),
        torch.stack([F.pad(pair.up, (0, 0, 0, rank - pair.up.shape[0])) for pair in held]),
    )


def _pair(
    adapter: LoraAdapter, name: str, location: TensorLocation, change: LowRank | StackedLowRank
) -> LowRankPair:
    slot = location.slot
    turned = isinstance(slot.transform, Transposed)
    left, right = change.factors()
    if isinstance(change, LowRank):
        if change.magnitude is not None:
            raise _whole(adapter, f"scales the rows of {name} (DoRA)")
        if change.transposed and not turned:
            raise _whole(adapter, f"changes {name}, which is a table of embeddings")
    if slot.sections or any(len(shape) != left.dim() for shape in location.shapes):
        raise _whole(adapter, f"changes {name}, which is no matrix of its own")
    rows, columns = (right.mT, left.mT) if turned else (left, right)
    narrow = [(*shape[:-1], rows.shape[-1]) for shape in location.shapes]  # rows x rank
    own = slot.transform.split(rows.mT if turned else rows, narrow)[slot.index]
    exact = slot.transform.split(left @ right, location.shapes)[slot.index]
    if not torch.allclose(own @ columns, exact, atol=1e-6 * float(exact.abs().max() or 1)):
        raise _whole(adapter, f"changes {name}, whose columns are stored in another order")
    return LowRankPair(columns.mT.contiguous(), own.mT.contiguous())


def _whole(adapter: LoraAdapter, why: str) -> WeightError:
    return WeightError(
        f"The adapter {adapter.directory} {why}, so it cannot be switched on in a graph\n"
        "  Merge it into the model: zoo adapt BASE --merge DIR."
    )


def add_changes(model: nn.Module, pairs: Mapping[str, LowRankPair]) -> None:
    """Add the changes of an adapter to the weights of a model."""
    with torch.no_grad():
        for name, pair in pairs.items():
            weight = model.get_parameter(name)
            weight.add_(pair.change().to(weight.dtype))
