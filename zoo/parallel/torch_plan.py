"""The plan of a model as PyTorch's parallel styles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    RowwiseParallel,
    SequenceParallel,
)

from zoo.core.sharding import HEADS, Cut
from zoo.parallel.local_parameters import WHOLE
from zoo.parallel.styles import (
    Divided,
    ExpertParallel,
    LocalParameters,
    Placed,
    ReadByAll,
    Several,
    StatesNoted,
)

if TYPE_CHECKING:
    from zoo.parallel.plan import ParallelPlan

HEADS_AXIS, CHANNELS_AXIS, TOKENS_AXIS = 1, -1, 1


def torch_plan(plan: ParallelPlan, *, sequence: bool) -> dict[str, ParallelStyle]:
    """The styles by module, in the order in which they are applied."""
    styles: dict[str, list[ParallelStyle]] = {}
    modules, parameters = _own_parameters(plan)
    for path, cut in plan.cuts.items():
        if path in modules:
            styles.setdefault(path, []).append(_style(cut, modules[path]))
    for owner, cuts in parameters.items():
        styles.setdefault(owner, []).append(LocalParameters(cuts))
    for path, attributes in plan.divided.items():
        styles.setdefault(path, []).append(Divided(attributes))
    if sequence:
        _by_tokens(plan, styles)
    for block in plan.blocks:  # last, when the heads of its mixers are cut
        styles[block] = [*styles.pop(block, []), StatesNoted()]
    return {path: several[0] if len(several) == 1 else Several(*several) for path, several in styles.items()}


def _own_parameters(
    plan: ParallelPlan,
) -> tuple[dict[str, nn.Module], dict[str, dict[str, Cut | None]]]:
    """The cut modules, and by their owners the parameters that are cut themselves."""
    from zoo.builder import assemble

    model = assemble(plan.spec)
    every = dict(model.named_modules())
    modules = {path: every[path] for path in plan.cuts if path in every}
    parameters: dict[str, dict[str, Cut | None]] = {}
    for path, cut in plan.cuts.items():
        owner, _, leaf = path.rpartition(".")
        if path not in every:
            parameters.setdefault(owner, {})[leaf] = cut
    return modules, parameters


def _style(cut: Cut, module: nn.Module) -> ParallelStyle:
    leaves = tuple(module._parameters)
    every: dict[str, Cut | None] = dict.fromkeys(leaves, cut)
    if cut.sections:
        return Several(LocalParameters(every), *([ReadByAll()] if cut.kind == "columns" else []))
    table = "bias" not in leaves
    match cut.kind:
        case "columns" if [*module.children()]:  # adapters act on the same inputs
            return Several(LocalParameters(dict.fromkeys(leaves, HEADS)), ReadByAll())
        case "columns":
            return ColwiseParallel()
        case "rows":
            return RowwiseParallel()
        case "vocabulary":
            layouts = Replicate()
            return (
                RowwiseParallel(input_layouts=layouts, output_layouts=layouts)
                if table
                else ColwiseParallel(output_layouts=layouts)
            )
        case "experts":
            return ExpertParallel()
        case "heads" | "shared":
            return LocalParameters(every)
        case "read_by_all":
            return Several(LocalParameters(dict.fromkeys(leaves, WHOLE)), ReadByAll("outputs"))
        case "summed":
            return Several(RowwiseParallel(), ReadByAll("outputs"))
        case "gathered":
            channels = Shard(CHANNELS_AXIS)
            return Several(
                LocalParameters(dict.fromkeys(leaves, WHOLE)),
                Placed((channels, Replicate()), (Replicate(), channels), every=True),
            )
        case "sliced":
            return Placed(outputs=(Replicate(), Shard(HEADS_AXIS)))


def _by_tokens(plan: ParallelPlan, styles: dict[str, list[ParallelStyle]]) -> None:
    """Cut the stream between the layers by tokens: branches gather it, and sum or cut what they return."""
    whole, tokens = Replicate(), Shard(TOKENS_AXIS)
    for path in plan.norms:
        styles.setdefault(path, []).append(SequenceParallel(use_local_output=True))
    for block, branches in plan.blocks.items():
        for branch in branches:
            path = f"{block}.{branch}"
            last = plan.last.get(path)
            if last is None:
                styles.setdefault(path, []).append(Placed((tokens, whole), (whole, tokens)))
            else:
                styles[f"{path}.{last}"] = [RowwiseParallel(output_layouts=tokens)]
                styles.setdefault(path, []).append(Placed((tokens, whole)))
        first, final = plan.edges[block]
        styles.setdefault(block, []).append(
            Placed((whole, tokens) if first else None, (tokens, whole) if final else None)
        )
