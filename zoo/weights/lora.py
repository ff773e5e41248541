"""LoRA adapters of PEFT: small matrices whose product changes the matrices of a base model (Hu et al., 2021)."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from specs.base.errors import shorten
from zoo.files.json_values import read_object
from zoo.weights.adapters import PREFIX, SETTINGS
from zoo.weights.files import read_tensors
from zoo.weights.source import WeightError
from zoo.weights.stored import ComputedTensor, StoredTensor, kind_fault

_FILES = ("adapter_model.safetensors", "adapter_model.bin")
_PART = re.compile(
    r"(?P<module>.+)\.lora_(?P<part>A|B|embedding_A|embedding_B|magnitude_vector)(\.default)?(\.weight)?"
)
_UNCHANGED = (None, True, False, "gaussian", "orthogonal", "eva")
"""The initializations that leave the base model's weights as they are."""

_REFUSED: Mapping[str, str] = {
    "alora_invocation_tokens": "acts from certain tokens on",
    "arrow_config": "chooses among adapters by the input",
    "kasa_config": "removes directions of the base model's matrices",
    "layer_replication": "repeats layers of the base model",
    "lora_bias": "adds to biases that the base model may lack",
    "monteclora_config": "draws several changes",
    "target_parameters": "changes parameters outside linear layers, such as stacked experts",
    "trainable_token_indices": "replaces rows of the token table",
    "use_bdlora": "splits its matrices into blocks",
    "use_qalora": "averages its inputs in groups",
}
"""Fields that must be false or absent, each with what it would do."""


@dataclass(frozen=True)
class LowRank:
    """The change of one matrix: ``scale`` x up x down; ``up``: out x rank, ``down``: rank x in.

    ``magnitude``: the length of each row of the changed matrix (DoRA: Liu et al., 2024). ``transposed``: whether the base stores the
    matrix as in x out.
    """

    down: StoredTensor
    up: StoredTensor
    scale: float
    magnitude: StoredTensor | None = None
    transposed: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the stored matrix that it changes."""
        sizes = (self.up.shape[0], self.down.shape[1])
        return sizes[::-1] if self.transposed else sizes

    def applied(self, matrix: Tensor) -> Tensor:
        """The changed matrix, in float32, as the base stores it."""
        matrix = matrix.float().T if self.transposed else matrix.float()
        matrix = matrix + self.scale * (self.up.read().float() @ self.down.read().float())
        if self.magnitude is not None:
            matrix = matrix * (self.magnitude.read().float().reshape(-1) / matrix.norm(dim=1))[:, None]
        return matrix.T.contiguous() if self.transposed else matrix


@dataclass(frozen=True)
class MergedTensor(ComputedTensor):
    """A stored matrix with the change of an adapter."""

    change: LowRank

    def read(self) -> Tensor:
        """The values.  Raises as the matrix's and the adapter's."""
        return self.change.applied(self.matrix.read())


@dataclass(frozen=True)
class BaseLayout:
    """The stored tensors of a base model that an adapter must know more of.

    ``transposed``: the names of those that are in x out (GPT-2). ``shared``: the parameters of each that the model reads in several
    places, such as tied embeddings, by its plain name.
    """

    transposed: frozenset[str] = frozenset()
    shared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class LoraAdapter:
    """An adapter: the changes of matrices by the base's module, and the tensors that replace others by the base's name."""

    directory: Path
    changes: Mapping[str, LowRank]
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
        _check(path, settings)
        file = next((directory / name for name in _FILES if (directory / name).is_file()), None)
        if file is None:
            raise WeightError(
                f"{directory} has neither {_FILES[0]} nor {_FILES[1]}\n  Download the adapter's weights."
            )
        parts: dict[str, dict[str, StoredTensor]] = {}
        replaced = {}
        for name, tensor in read_tensors(file, directory).items():
            plain = name.removeprefix(PREFIX)
            if part := _PART.fullmatch(plain):
                parts.setdefault(part["module"], {})[part["part"]] = tensor
            else:
                replaced[plain.replace(".base_layer.", ".")] = tensor
        changes = {module: _change(file, module, held, settings) for module, held in parts.items()}
        return cls(directory, changes, replaced)

    def merged(
        self, tensors: Mapping[str, StoredTensor], plain: Callable[[str], str], layout: BaseLayout
    ) -> dict[str, StoredTensor]:
        """The tensors of a base with the changes; ``plain`` gives the family's plain name of one, whatever its prefix.

        Raises :class:`WeightError`, naming all tensors at fault, where the adapter fits another base, or changes a tensor
        that the base ties.
        """
        merged, faults = dict(tensors), []
        names = {plain(name): name for name in tensors}
        for name, tensor in self._new():
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
        if faults:
            more = [f"and {len(faults) - 4} more"] if len(faults) > 4 else []
            raise WeightError(
                "\n  ".join([f"The adapter {self.directory} fits another base model", *faults[:4], *more])
                + "\n  Pass the base model that the adapter was trained for."
            )
        return merged

    def _new(self) -> Iterator[tuple[str, LowRank | StoredTensor]]:
        """The tensors that replace others, then the changes: PEFT also stores embeddings that it changes."""
        yield from self.replaced.items()
        for module, change in self.changes.items():
            yield f"{module}.weight", change


def _tied(directory: Path, name: str, parameters: tuple[str, ...]) -> WeightError:
    uses = f"{', '.join(parameters[:-1])} and {parameters[-1]}"
    return WeightError(
        f"The adapter {directory} changes {name}, which the base ties: {uses} are one tensor\n"
        "  Save the base with tie_word_embeddings=False and pass that, or merge the adapter with PEFT."
    )


def _check(path: Path, settings: Mapping[str, Any]) -> None:
    kind = settings.get("peft_type")
    if kind != "LORA":
        raise WeightError(
            f"{path}: peft_type must be LORA to be merged\n  value: {shorten(kind)}\n  Merge it with PEFT."
        )
    for name, what in _REFUSED.items():
        if settings.get(name):
            raise WeightError(
                f"{path}: {name} is not supported, as it {what}\n  value: {shorten(settings[name])}\n  Merge it with PEFT."
            )
    start = settings.get("init_lora_weights")
    if start not in _UNCHANGED:
        raise WeightError(
            f"{path}: init_lora_weights {shorten(start)} is not supported, as it changes the base model's weights\n"
            "  Convert the adapter with path_initial_model_for_weight_conversion of PEFT's save_pretrained, or merge it with PEFT."
        )
    for name in ("r", "lora_alpha"):
        _check_number(path, name, settings.get(name, 8))
    alphas = settings.get("alpha_pattern") or {}
    if not isinstance(alphas, dict):
        raise WeightError(
            f"{path}: alpha_pattern must be an object\n  value: {shorten(alphas)}\n  Correct the field."
        )
    for pattern, value in alphas.items():
        try:
            re.compile(pattern)
        except re.error as error:
            raise WeightError(
                f"{path}: alpha_pattern must have regular expressions: {error}\n  value: {shorten(pattern)}\n  Correct the field."
            ) from None
        _check_number(path, f"alpha_pattern.{pattern}", value)


def _check_number(path: Path, name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise WeightError(
            f"{path}: {name} must be a number above 0\n  value: {shorten(value)}\n  Correct the field."
        )


def _change(
    file: Path, module: str, held: Mapping[str, StoredTensor], settings: Mapping[str, Any]
) -> LowRank:
    embedding = "embedding_A" in held or "embedding_B" in held
    down, up = (held.get(f"embedding_{part}" if embedding else part) for part in "AB")
    if down is None or up is None:
        raise WeightError(
            f"{file}: {module} has one of the matrices A and B alone\n  Download the adapter again."
        )
    if len(down.shape) != 2 or len(up.shape) != 2 or down.shape[0] != up.shape[1]:
        shapes = f"{_sizes(down.shape)} and {_sizes(up.shape)}"
        raise WeightError(
            f"{file}: the matrices A and B of {module} have no product\n  value: {shapes}\n  Merge it with PEFT."
        )
    for matrix in (down, up):
        if matrix.dtype is None:
            raise WeightError(f"{file}: {matrix.name} {kind_fault(matrix.kind)}")
    alphas = settings.get("alpha_pattern") or {}
    alpha = next(
        (value for key, value in alphas.items() if re.match(rf"(.*\.)?({key})$", module)),
        settings.get("lora_alpha", 8),
    )
    rank = down.shape[0]
    scale = alpha / (math.sqrt(rank) if settings.get("use_rslora") else rank)
    magnitude = held.get("magnitude_vector")
    if magnitude is not None and math.prod(magnitude.shape) != up.shape[0]:
        raise WeightError(
            f"{file}: the magnitudes of {module} must be one for each of its {up.shape[0]} outputs\n"
            f"  value: {_sizes(magnitude.shape)}\n  Download the adapter again."
        )
    return LowRank(down, up, scale, magnitude, embedding)


def _sizes(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))
