"""The plans of a model with the module names of a Hugging Face family."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from zoo.builder import assemble
from zoo.configs.exporting import write_config
from zoo.core.sharding import COLUMNS, Cut
from zoo.core.tensors import weight_tensors
from zoo.families.common.tensors import StoredParameter, TensorRules, Tensors
from zoo.families.common.transforms import SAME
from zoo.families.registry import family as family_of

if TYPE_CHECKING:
    from zoo.parallel.plan import ParallelPlan

STYLES = {
    "columns": "colwise",
    "rows": "rowwise",
    "shared": "replicated_with_grad_allreduce",
}
"""The styles of transformers for our cuts; it has none for the others."""

_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")
_STREAM = ["hidden_states"]


def hugging_face_plan(plan: ParallelPlan, model_type: str | None) -> dict[str, Any]:
    """``model_type``, ``tp_plan``, ``pp_plan``, and the modules that are ``left_out`` as the family stores them otherwise.

    Names are those below the base model, as in ``base_model_tp_plan`` of a config, and the head's.  Raises
    :class:`zoo.configs.exporting.NoFamilyError` where no family's config can say the spec.
    """
    config = write_config(plan.spec, model_type)
    names = family_of(config["model_type"]).tensors
    shapes = {
        name: tuple(tensor.shape)
        for name, tensor in weight_tensors(assemble(plan.spec), remove_duplicate=False)
    }
    table = names.table(plan.spec, shapes)
    styles: dict[str, list[tuple[str, str] | None]] = {}
    for component, cuts in _by_component(plan, shapes).items():
        gathered = any(cut.kind == "gathered" for cut in cuts.values())
        placed = [_placed(table, names, path, cut, gathered=gathered) for path, cut in cuts.items()]
        styles.setdefault(_NUMBER.sub("*", f".{component}")[1:], []).extend(placed)
    for component in plan.last:  # a layer whose component is whole
        pattern = _NUMBER.sub("*", f".{component}")[1:]
        if pattern in styles and not any(path.startswith(f"{component}.") for path in plan.cuts):
            styles[pattern].append(None)
    # The styles of a component work together, and in all layers.
    left_out = [component for component, placed in styles.items() if None in placed]
    modules = dict(
        pair for placed in styles.values() if None not in placed for pair in placed if pair is not None
    )
    return {
        "model_type": config["model_type"],
        "tp_plan": {name: style for name, style in modules.items() if style},
        "pp_plan": _stages(plan, {name: table.find(name) for name in shapes}, names),
        "left_out": left_out,
    }


def _by_component(plan: ParallelPlan, weights: Collection[str]) -> dict[str, dict[str, Cut]]:
    """The cuts of each component by its path, apart from modules without weights."""
    cuts: dict[str, dict[str, Cut]] = {}
    components = [
        path for path in plan.last if plan.cuts.get(path) != COLUMNS
    ]  # layers with adapters are none
    parts = [name.split(".") for name in weights]
    weighted = {".".join(names[:end]) for names in parts for end in range(1, len(names) + 1)}
    for path, cut in plan.cuts.items():
        if path in weighted:
            component = max((owner for owner in components if f"{path}.".startswith(f"{owner}.")), key=len)
            cuts.setdefault(component, {})[path] = cut
    return cuts


def _placed(
    table: TensorRules, names: Tensors, path: str, cut: Cut, *, gathered: bool
) -> tuple[str, str] | None:
    """The family's module and style for a cut, or None where it has none."""
    slot = next(filter(None, map(table.find, (f"{path}.weight", path))), None)
    style = STYLES.get(cut.kind)
    if cut.kind == "vocabulary":
        style = "colwise_gather_output" if path.startswith("head.") else "embedding_rowwise"
    elif gathered:  # norms of all heads read whole vectors
        style = {"columns": "colwise_gather_output", "rows": "rowwise_split_input", "gathered": ""}.get(
            cut.kind
        )
    if slot is None or style is None or cut.sections or not _plain(slot):
        return None
    return _module(slot, names), style


def _plain(slot: StoredParameter) -> bool:
    """Whether the family has a module for the matrix alone, in the same layout."""
    return len(slot.parameters) == 1 and slot.transform is SAME and not slot.field


def _module(slot: StoredParameter, names: Tensors) -> str:
    return _NUMBER.sub("*", names.plain(slot.stored[0]).removesuffix(".weight"))


def _stages(
    plan: ParallelPlan, slots: dict[str, StoredParameter | None], names: Tensors
) -> dict[str, tuple[list[str], list[str]]]:
    """The embedding, the layers and the last norm with their inputs and outputs; empty for models of several stacks."""
    stacks = [name for name, _ in plan.spec.stacks()]
    if len(stacks) > 1:
        return {}
    stored = {path: _module(slot, names) for path, slot in slots.items() if slot is not None}
    boundaries = {
        "embedding.token.": (["input_ids"], ["inputs_embeds"]),
        f"{stacks[0]}.blocks.": (["hidden_states", "attention_mask"], _STREAM),
        f"{stacks[0]}.final_norm.": (_STREAM, _STREAM),
    }
    stages = {}
    for start, ports in boundaries.items():
        module = next((name for path, name in stored.items() if path.startswith(start)), None)
        if module is not None:
            stages[module.partition(".*")[0]] = ports
    return stages
