"""Mixed precision by measurement: the bits of each group of matrices, chosen by the cost of low ones within a size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import torch

from exporters.data.data_file import Region, lay_out, total_bytes
from exporters.data.mixed_bits import BlocksByWeight
from exporters.graph.content import Content
from exporters.graph.precisions import eight_bits
from exporters.graph.quantization.matrix import QuantizedMatrix
from exporters.graph.quantization.scheme import fitted, int8_block
from exporters.graph.values import Graph, Parameter
from exporters.rounding.bit_choice import BitChoice, Form, Group, Key, choose
from exporters.rounding.bit_costs import Measure
from exporters.rounding.size_budget import Size, SizeBudget
from exporters.target.targets import Target
from specs.base.errors import UserError, option_name
from zoo.builder import ZooModel
from zoo.core.tensors import weight_tensors
from zoo.record.records import BlocksRecord, GroupRecord, MixedRecord
from zoo.weights.blocks import Blocks

Lower = Callable[[BlocksByWeight], Sequence[Graph]]
"""Makes the graphs of an export in which some weights have their own blocks."""


@dataclass(frozen=True)
class BitPlan:
    """The form of every group in descending order of cost, and the resulting size."""

    budget: SizeBudget
    size: Size
    choices: tuple[BitChoice, ...]

    @property
    def more_bits(self) -> dict[str, Blocks | None]:
        """The blocks of the weights that get more bits than the precision has."""
        return {
            name: choice.form.blocks
            for choice in self.choices
            if choice.raised
            for name in choice.group.weights
        }

    @property
    def record(self) -> MixedRecord:
        """As the record in ``export.json``."""
        return MixedRecord(
            budget=self.budget.text,
            size=self.size.data,
            bits_per_weight=round(self.size.bits, 4),
            groups=tuple(_record(choice) for choice in self.choices),
        )


def _record(choice: BitChoice) -> GroupRecord:
    blocks = choice.form.blocks
    return GroupRecord(
        name=choice.group.name,
        weights=choice.group.weights,
        bits=choice.form.bits,
        blocks=None if blocks is None else BlocksRecord(**asdict(blocks)),
        raised=choice.raised,
        cost=None if choice.cost is None else float(f"{choice.cost:.3g}"),
        bytes=choice.form.bytes,
    )


def planned(
    model: ZooModel,
    budget: SizeBudget,
    lower: Lower,
    carried: Iterable[str],
    measure: Measure,
    target: Target,
) -> BitPlan:
    """The form of every group of matrices that fits the data file into a budget.

    Groups are raised from the bits of the precision to 8, or from 8 to 16 where everything can have 8 bits.
    ``carried`` weights keep the codes of the checkpoint. Raises :class:`specs.base.errors.UserError` where even the
    smallest file exceeds the budget.
    """
    shapes = _shapes(model)
    low = lower({})
    check_smallest(model, budget, low)
    size_of = _sizes(model, low)
    contents = _matrices(low, frozenset(carried))
    eight: dict[str, Blocks | None] = {
        name: _in_eight_bits(name, content.blocks, shapes[name], target)
        for content in contents
        if content.blocks.bits < 8
        for name in content.names
    }
    base: Mapping[str, Blocks | None] = {}
    own: Mapping[str, Blocks | None] = eight
    high = lower(own)
    if budget.allows(size_of(_parameters(high))):
        every: dict[str, Blocks | None] = {name: None for content in contents for name in content.names}
        low, base, own, high = high, eight, every, lower(every)
        contents = _matrices(low, frozenset(carried))
    groups = list(
        _groups(contents, _stored(lay_out(_parameters(low))), _stored(lay_out(_parameters(high))), own)
    )
    costs = measure([group for group in groups if group.high is not None])
    raised = choose(groups, costs, lambda some: budget.allows(size_of(_mixed(low, high, some))))
    while True:
        chosen = {**base} | {name: own[name] for group in raised for name in group.weights}
        size = size_of(_parameters(lower(chosen)))
        if budget.allows(size) or not raised:
            break
        raised.pop()  # alignment in the data file costs more than estimated
    keys = {group.weights for group in raised}

    def choice(group: Group) -> BitChoice:
        form = group.high if group.weights in keys and group.high is not None else group.low
        return BitChoice(group, form, group.weights[0] in chosen, costs.get(group.weights))

    made = sorted(
        map(choice, groups), key=lambda bit_choice: -1.0 if bit_choice.cost is None else -bit_choice.cost
    )
    made.sort(key=lambda bit_choice: bit_choice.cost is None)
    return BitPlan(budget, size, tuple(made))


def _in_eight_bits(name: str, blocks: Blocks, shape: torch.Size, target: Target) -> Blocks | None:
    """The blocks of a matrix with 8 bits; all matrices of experts have the size that they have with fewer."""
    if len(shape) == 3:
        return replace(eight_bits(target, blocks.size), symmetric=blocks.symmetric)
    blocks = eight_bits(target, int8_block((name,)))
    return fitted(blocks, shape[1], target.undivided)


def check_smallest(model: ZooModel, budget: SizeBudget, low: Sequence[Graph]) -> None:
    """Raise :class:`specs.base.errors.UserError` where the smallest graphs exceed a budget."""
    smallest = _sizes(model, low)(_parameters(low))
    if not budget.allows(smallest):
        raise _too_small(budget, smallest)


def _shapes(model: ZooModel) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in weight_tensors(model)}


def _sizes(model: ZooModel, low: Sequence[Graph]) -> Callable[[Iterable[Parameter]], Size]:
    """Returns the size of parameters; bits are counted for the weights that ``low`` has in blocks."""
    shapes = _shapes(model)
    counts = {name: shapes[name].numel() for content in _all_matrices(low) for name in content.names}

    def size_of(parameters: Iterable[Parameter]) -> Size:
        regions = lay_out(parameters)
        stored = sum(length for names, length in _stored(regions).items() if names[0] in counts)
        return Size(total_bytes(regions), 8 * stored / max(1, sum(counts.values())))

    return size_of


def _too_small(budget: SizeBudget, smallest: Size) -> UserError:
    return UserError(
        f"{option_name('budget')} must be at least the smallest size that this export can have\n"
        f"  value: {budget.text}; smallest: {smallest.data} bytes, {smallest.bits:.3f} bits per weight\n"
        f"  Pass {option_name('budget')} {budget.smallest(smallest)} or more, or store less: a larger {option_name('block_size')}, "
        f"{option_name('head_precision')} int4, no {option_name('asymmetric')}."
    )


def _parameters(graphs: Iterable[Graph]) -> Iterator[Parameter]:
    return (parameter for graph in graphs for parameter in graph.parameters.values())


def _all_matrices(graphs: Iterable[Graph]) -> list[QuantizedMatrix]:
    matrices = dict.fromkeys(p.content for p in _parameters(graphs) if isinstance(p.content, QuantizedMatrix))
    return list(matrices)


def _matrices(graphs: Iterable[Graph], carried: frozenset[str]) -> list[QuantizedMatrix]:
    """The quantized contents of graphs whose codes are not fixed."""
    return [content for content in _all_matrices(graphs) if not carried & {*content.names}]


def _stored(regions: Mapping[str, Region]) -> dict[Key, int]:
    """The bytes of each content, by the weights that it is made of."""
    lengths: dict[Key, int] = {}
    places: dict[tuple[Content, int], Region] = {
        (region.content, region.part): region for region in regions.values()
    }
    for region in places.values():
        names = region.content.names
        if names:
            lengths[names] = lengths.get(names, 0) + region.length
    return lengths


def _groups(
    contents: Iterable[QuantizedMatrix], low: Mapping[Key, int], high: Mapping[Key, int], own: BlocksByWeight
) -> Iterator[Group]:
    """Contents as groups: contents that share weights (a table in two layouts) form one group, and so do all experts
    of a mixture, which one operation reads.
    """
    units: dict[str, dict[Key, QuantizedMatrix]] = {}
    for content in contents:
        units.setdefault(_unit(content.names), {})[content.names] = content
    for parts in units.values():
        names = tuple(name for key in parts for name in key)
        blocks = next(iter(parts.values())).blocks
        changes = names[0] in own and own[names[0]] != blocks
        raised = [length for key, length in high.items() if {*key} <= {*names}]
        yield Group(
            names,
            Form(blocks, sum(low[key] for key in parts)),
            Form(own[names[0]], sum(raised)) if changes else None,
        )


def _unit(names: Key) -> str:
    """The mixture of some experts, or else the weights themselves."""
    path, experts, _ = names[0].rpartition(".experts.")
    return f"{path}{experts}" if experts else " ".join(names)


def _mixed(low: Iterable[Graph], high: Iterable[Graph], raised: Iterable[Group]) -> Iterator[Parameter]:
    """The parameters of the low graphs, replaced by the high graphs' parameters in raised groups."""
    names = {name for group in raised for name in group.weights}
    for first, second in zip(low, high, strict=True):
        yield from (p for p in first.parameters.values() if not names & {*p.content.names})
        yield from (p for p in second.parameters.values() if names & {*p.content.names})
