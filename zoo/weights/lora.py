"""LoRA adapters of PEFT: small matrices whose product changes the matrices of a base model (Hu et al., 2021)."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from specs.base.errors import shorten
from zoo.files.json_values import read_object
from zoo.weights.adapters import PREFIX, SETTINGS
from zoo.weights.files import read_tensors
from zoo.weights.lora_settings import check_settings, rank_of, scale_of, stacked_leaves
from zoo.weights.low_rank import LowRank, MergedTensor
from zoo.weights.source import WeightError
from zoo.weights.stacked_lora import StackedChange, StackedLowRank, placed
from zoo.weights.stored import StoredTensor, kind_fault

_FILES = ("adapter_model.safetensors", "adapter_model.bin")
_PART = re.compile(
    r"(?P<module>.+)\.lora_(?P<part>A|B|embedding_A|embedding_B|magnitude_vector)(\.default)?(\.weight)?"
)


@dataclass(frozen=True)
class BaseLayout:
    """The stored tensors of a base model that an adapter must know more of.

    ``transposed``: the names of those that are in x out (GPT-2). ``shared``: the parameters of each that the model reads in several
    places, such as tied embeddings, by its plain name. ``experts``: the names of the matrices, expert by expert, that a stacked
    parameter of transformers consists of, such as gates and ups, by its plain name. ``aliases``: the names of those that other
    releases of transformers name otherwise, by their other plain names.
    """

    transposed: frozenset[str] = frozenset()
    shared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    experts: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LoraAdapter:
    """An adapter: the changes of matrices, and of stacked parameters, by the base's module, and the tensors that replace others by
    the base's name."""

    directory: Path
    changes: Mapping[str, LowRank]
    stacked: Mapping[str, tuple[StackedChange, ...]]
    replaced: Mapping[str, StoredTensor]

    @classmethod
    def open(cls, directory: Path) -> LoraAdapter:
        """Read what ``save_pretrained`` of PEFT wrote. Raises :class:`WeightError` for other kinds of adapters and damage."""
        path = directory / SETTINGS
        if not os.path.lexists(path):
            raise WeightError(
                f"{directory} has no {SETTINGS}\n  Pass the directory of a LoRA adapter of PEFT."
            )
        settings = read_object(path, WeightError, directory)
        check_settings(path, settings)
        file = next((directory / name for name in _FILES if (directory / name).is_file()), None)
        if file is None:
            raise WeightError(
                f"{directory} has neither {_FILES[0]} nor {_FILES[1]}\n  Download the adapter's weights."
            )
        parts: dict[str, dict[str, StoredTensor]] = {}
        replaced = {}
        for name, tensor in read_tensors(file, directory).items():
            plain = name.removeprefix(PREFIX)
            if plain == name:
                raise WeightError(
                    f"{file}: names must begin with {PREFIX}: PEFT leaves out all others\n  value: {shorten(name)}\n"
                    "  Save the adapter with save_pretrained of PEFT."
                )
            if tensor.dtype is not None and not tensor.read().isfinite().all():
                raise WeightError(
                    f"{file}: {name} has values that are NaN or infinite\n  Train the adapter again."
                )
            if part := _PART.fullmatch(plain):
                parts.setdefault(part["module"], {})[part["part"]] = tensor
            else:
                replaced[plain.replace(".base_layer.", ".")] = tensor
        if not parts and not replaced:
            raise WeightError(f"{file} has no tensors\n  Download the adapter again.")
        changes, stacked = dict[str, LowRank](), dict[str, tuple[StackedChange, ...]]()
        for module, held in parts.items():
            own = _own(module)
            changes[module] = change = _change(file, module, held, settings)
            ranks = {leaf: rank_of(f"{own}.{leaf}", settings) for leaf in stacked_leaves(own, settings)}
            if ranks:
                scales = {leaf: scale_of(f"{own}.{leaf}", rank, settings) for leaf, rank in ranks.items()}
                parameter = StackedChange(change.down, change.up, ranks, scales)
                stacked[own] = (*stacked.get(own, ()), parameter)
        return cls(directory, changes, stacked, replaced)

    def merged(
        self, tensors: Mapping[str, StoredTensor], plain: Callable[[str], str], layout: BaseLayout
    ) -> dict[str, StoredTensor]:
        """The tensors of a base with the changes; ``plain`` gives the family's plain name of one, whatever its prefix.

        Raises :class:`WeightError`, naming all tensors at fault, where the adapter fits another base, or changes a tensor
        that the base ties.
        """
        merged, faults = dict(tensors), []
        names = {**layout.aliases, **{plain(name): name for name in tensors}}
        shape_of = partial(_stacked_shape, tensors, names, plain, layout)
        stacked_modules = {
            module: changes
            for module, changes in self.stacked.items()
            if any(shape_of(f"{module}.{leaf}") for change in changes for leaf in change.ranks)
        }
        for name, tensor in self._new(stacked_modules):
            if plain(name) in layout.shared:
                raise _tied(self.directory, name, layout.shared[plain(name)])
            stored = names.get(plain(name))
            if stored is None:
                faults.append(f"{name}: the base has no such tensor")
                continue
            if isinstance(tensor, LowRank) and stored in layout.transposed:
                tensor = replace(tensor, transposed=True)
            if tensors[stored].shape != tensor.shape:
                kind = "a change" if isinstance(tensor, LowRank) else "a tensor"
                faults.append(
                    f"{name}: {kind} for {_sizes(tensor.shape)}, and the base has {_sizes(tensors[stored].shape)}"
                )
                continue
            merged[stored] = MergedTensor(merged[stored], tensor) if isinstance(tensor, LowRank) else tensor
        for module, changes in stacked_modules.items():
            for name, stacked in placed(module, changes, shape_of):
                if isinstance(stacked, str):
                    faults.append(f"{name}: {stacked}")
                elif stored := names.get(plain(name)):
                    merged[stored] = MergedTensor(merged[stored], stacked)
                else:
                    merged |= _by_expert(merged, layout.experts[plain(name)], stacked)
        if faults:
            more = [f"and {len(faults) - 4} more"] if len(faults) > 4 else []
            raise WeightError(
                "\n  ".join([f"The adapter {self.directory} fits another base model", *faults[:4], *more])
                + "\n  Pass the base model that the adapter was trained for."
            )
        return merged

    def _new(self, stacked: Container[str]) -> Iterator[tuple[str, LowRank | StoredTensor]]:
        """The tensors that replace others, then the changes of modules that are not ``stacked``: PEFT also stores embeddings that it
        changes."""
        yield from self.replaced.items()
        for module, change in self.changes.items():
            own = _own(module)
            if own not in stacked:
                yield f"{own}.weight", change


def _own(module: str) -> str:
    """The name of a module in the base: PEFT wraps it once for each of its parameters."""
    return module.replace(".base_layer", "")


def _stacked_shape(
    tensors: Mapping[str, StoredTensor],
    names: Mapping[str, str],
    plain: Callable[[str], str],
    layout: BaseLayout,
    name: str,
) -> tuple[int, ...] | None:
    """The shape of a stacked parameter, which the base may store expert by expert; None where it has none."""
    stored, parts = names.get(plain(name)), layout.experts.get(plain(name))
    if stored is not None:
        return tensors[stored].shape
    if parts is None:
        return None
    rows = sum(tensors[part[0]].shape[0] for part in parts)
    return len(parts[0]), rows, tensors[parts[0][0]].shape[1]


def _by_expert(
    tensors: Mapping[str, StoredTensor], parts: Sequence[Sequence[str]], change: StackedLowRank
) -> dict[str, StoredTensor]:
    """The matrices of experts with a change of all of them as one parameter."""
    merged: dict[str, StoredTensor] = {}
    start = 0
    for part in parts:
        rows = slice(start, start + tensors[part[0]].shape[0])
        start = rows.stop
        for expert, name in enumerate(part):
            own = LowRank(*change.of_expert(expert, rows), change.scale)
            merged[name] = MergedTensor(tensors[name], own)
    return merged


def _tied(directory: Path, name: str, parameters: tuple[str, ...]) -> WeightError:
    uses = f"{', '.join(parameters[:-1])} and {parameters[-1]}"
    return WeightError(
        f"The adapter {directory} changes {name}, which the base ties: {uses} are one tensor\n"
        "  Save the base with tie_word_embeddings=False and pass that, or merge the adapter with PEFT."
    )


def _matrices(file: Path, module: str, held: Mapping[str, StoredTensor]) -> tuple[StoredTensor, StoredTensor]:
    """A and B of a module, down and up."""
    down, up = (held.get(part) or held.get(f"embedding_{part}") for part in "AB")
    if down is None or up is None:
        raise WeightError(
            f"{file}: {module} has one of the matrices A and B alone\n  Download the adapter again."
        )
    if len(down.shape) != 2 or len(up.shape) != 2 or not down.shape[0] == up.shape[1] > 0:
        shapes = f"{_sizes(down.shape)} and {_sizes(up.shape)}"
        raise WeightError(
            f"{file}: the matrices A and B of {module} have no product\n  value: {shapes}\n  Merge it with PEFT."
        )
    for matrix in (down, up):
        if matrix.dtype is None:
            raise WeightError(f"{file}: {matrix.name} {kind_fault(matrix.kind)}")
    return down, up


def _change(
    file: Path, module: str, held: Mapping[str, StoredTensor], settings: Mapping[str, Any]
) -> LowRank:
    down, up = _matrices(file, module, held)
    magnitude = held.get("magnitude_vector")
    _check_stated(file, module, down.shape[0], magnitude is not None, settings)
    scale = scale_of(module, down.shape[0], settings)
    if magnitude is not None and math.prod(magnitude.shape) != up.shape[0]:
        raise WeightError(
            f"{file}: the magnitudes of {module} must be one for each of its {up.shape[0]} outputs\n"
            f"  value: {_sizes(magnitude.shape)}\n  Download the adapter again."
        )
    return LowRank(down, up, scale, magnitude, "embedding_A" in held)


def _check_stated(
    file: Path, module: str, rank: int, has_magnitude: bool, settings: Mapping[str, Any]
) -> None:
    """Raise :class:`WeightError` where the settings state another rank, or another use of magnitudes, than the tensors have."""
    stated_rank = rank_of(module, settings)
    if not stacked_leaves(_own(module), settings) and rank != stated_rank:
        raise WeightError(
            f"{file}: {module} has rank {rank}, and {SETTINGS} states {stated_rank}\n  Use both files of one adapter."
        )
    if has_magnitude != bool(settings.get("use_dora")):
        has = "magnitudes, and use_dora is false" if has_magnitude else "no magnitudes, and use_dora is true"
        raise WeightError(f"{file}: {module} has {has} in {SETTINGS}\n  Use both files of one adapter.")


def _sizes(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))
