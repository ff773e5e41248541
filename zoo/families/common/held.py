"""The names and layouts of transformers 5 in memory, which PEFT, FSDP and ``save_original_format=False`` write to files.

It renames modules when it loads a checkpoint, stacks the matrices of a layer's experts, and takes fused projections apart.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from zoo.families.common.tensors import Rule, StoredParameter, Tensors, modules
from zoo.families.common.transforms import Stacked

Renaming = tuple[str, str]
"""A pattern in stored names, and its replacement."""

ATTENTION_OF_IMAGES: tuple[Renaming, ...] = (
    (r"attention\.attention\.query", "attention.q_proj"),
    (r"attention\.attention\.key", "attention.k_proj"),
    (r"attention\.attention\.value", "attention.v_proj"),
    (r"attention\.output\.dense", "attention.o_proj"),
)
LAYERS_OF_IMAGES: tuple[Renaming, ...] = (
    *ATTENTION_OF_IMAGES,
    (r"encoder\.layer\.", "layers."),
    (r"intermediate\.dense", "mlp.fc1"),
    (r"\.output\.dense", ".mlp.fc2"),
)
"""ViT and its kin."""

PARTS: tuple[Renaming, ...] = (
    (r"^language_model\.lm_head", "lm_head"),
    (r"^language_model\.model", "language_model"),
    (r"^(language_model|vision_tower|multi_modal_projector)", r"model.\1"),
)
"""The parts of LLaVA and its kin."""


def also_named(rules: Iterable[Rule], *renamings: Renaming) -> tuple[Rule, ...]:
    """Return rules that read the names after the renamings too."""

    def renamed(name: str) -> str:
        for pattern, other in renamings:
            name = re.sub(pattern, other, name)
        return name

    def others(rule: Rule) -> tuple[str, ...]:
        names = (*rule.also, *map(renamed, (rule.stored, *rule.also)))
        return tuple(dict.fromkeys(name for name in names if name != rule.stored))

    return tuple(replace(rule, also=others(rule)) for rule in rules)


def unfused(tensors: Tensors, pairs: Mapping[str, str], *renamings: Renaming) -> Tensors:
    """Return a table in which fused modules are apart, stored name -> ours, and the others have the names after the renamings
    too."""
    own = {name for rule in modules(pairs) for name in rule.parameters}
    kept = (rule for rule in tensors.rules if own.isdisjoint(rule.parameters))
    heads = {kind: also_named(rules, *renamings) for kind, rules in tensors.heads.items()}
    return replace(tensors, rules=(*also_named(kept, *renamings), *modules(pairs)), heads=heads)


_MATRIX = re.compile(r"\.experts\.(gate|up|down)\.weight$")
_ROW = ".experts.{expert}."


def stacked_experts(slot: StoredParameter, parameters: Collection[str]) -> StoredParameter | None:
    """Return the slot of a layer's stacked experts if ``slot`` holds a tensor per expert: one tensor for all of them, in which
    the rows of up follow the rows of gate. None for other parameters."""
    parameter = slot.parameters[slot.index]
    own = _MATRIX.search(parameter)
    stored = [name[: name.index(_ROW)] for name in slot.stored if _ROW in name]
    if own is None or len(slot.parameters) > 1 or not stored:
        return None
    pair = tuple(f"{parameter[: own.start(1)]}{name}.weight" for name in ("gate", "up"))
    held, leaf = (pair, "gate_up_proj") if pair[0] in parameters else (pair[1:], "up_proj")
    if own[1] == "down":
        held, leaf = (parameter,), "down_proj"
    names = tuple(f"{name}.experts.{leaf}" for name in stored)
    return StoredParameter(names, held, held.index(parameter), Stacked(1))
