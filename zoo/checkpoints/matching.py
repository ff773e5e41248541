"""Find every parameter of a model in a checkpoint before reading any values."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from specs.base.printable import printable
from specs.model.model import Model
from zoo.core.tensors import fixed_values, weight_tensors
from zoo.families.common.held import stacked_experts
from zoo.families.common.tensors import StoredParameter, Tensors
from zoo.families.common.transforms import Shape, Transposed
from zoo.families.own import OWN
from zoo.weights.files import TensorFiles
from zoo.weights.source import WeightError
from zoo.weights.stored import StoredTensor, kind_fault, read_pieces

_LISTED = 8
_CONSIDERED = 1000  # the unused names considered for a missing one
_COMPARED = 2**22  # values at a time


@dataclass(frozen=True)
class TensorLocation:
    """The location of one parameter: the ``slot`` of a stored tensor, among parts of these shapes.

    There are several ``stored`` tensors where each holds a row, or a section of the rows, of the parameter.
    """

    stored: tuple[StoredTensor, ...]
    slot: StoredParameter
    shapes: tuple[Shape, ...]

    def values(self, row: int = 0) -> Tensor:
        """Return the parameter, or a row of it, in its own shape and the file's dtype."""
        return self._part(self.stored[row].read())

    def extent(self, row: int = 0) -> tuple[int, int] | None:
        """Return the offset and length in bytes of the parameter, or of a row of it, where the file holds it in order."""
        stored = self.stored[row]
        if stored.extent is None:
            return None
        outline = stored.outline()
        part = self._part(outline)
        copied = part.untyped_storage()._cdata != outline.untyped_storage()._cdata
        if copied or not part.is_contiguous():
            return None
        return stored.extent[0] + int(part.storage_offset()) * part.dtype.itemsize, part.nbytes

    def order(self, lines: Shape) -> Tensor | None:
        """Return the stored rows of codes of the parameter in order, given the shape of the tensor with a single value for each row
        (:class:`zoo.weights.stored.StoredCodes`); None where its transform divides them."""
        transform, stacked = self.slot.transform, len(lines) == 3
        whole = isinstance(transform, Transposed) and transform.by_columns if stacked else transform.by_rows
        if not whole:
            return None
        narrow = [(*shape[:-1], 1) for shape in self.shapes]
        numbers = torch.arange(math.prod(lines)).view(lines)
        return transform.split(numbers, narrow)[self.slot.index].flatten()

    def _part(self, stored: Tensor) -> Tensor:
        shapes = self.shapes
        if self.slot.sections:  # whose bounds transformers 5.24 moves where it saves convolutions
            shapes = tuple((len(stored), *shape[1:]) for shape in shapes)
        return self.slot.transform.split(stored, shapes)[self.slot.index]


@dataclass
class Match:
    """The locations of all parameters, the values of optional parameters that are not stored, and the unused tensors.

    Of the ``unused`` tensors, by their plain names, those in ``ignored`` are read by models of other specs.
    """

    locations: dict[str, TensorLocation] = field(default_factory=dict)
    fixed: dict[str, Tensor] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)
    unused: dict[str, StoredTensor] = field(default_factory=dict)


def match(files: TensorFiles, names: Tensors, model: nn.Module, spec: Model) -> Match:
    """Return the locations of the parameters of a spec's model.

    Raises one :class:`WeightError` that names every tensor that is missing, unused, or of a wrong shape or dtype; or else
    the tensors that the model shares although they differ in the checkpoint.
    """
    matching = _Matching(files, names, model, spec)
    matching.find()
    if names.other is not None and matching.faulty:
        other = _Matching(files, names.other, model, spec)
        other.find()
        matching = matching if other.faulty else other
    matching.raise_faults()
    matching.check_copies()
    return matching.match


@dataclass
class _Copy:
    """A tensor that a checkpoint stores again under another name."""

    parameter: str
    first: StoredTensor
    second: StoredTensor


class _Matching:
    def __init__(self, files: TensorFiles, names: Tensors, model: nn.Module, spec: Model) -> None:
        self.match = Match()
        self._files, self._names, self._spec = files, names, spec
        self._shapes: dict[str, Shape] = {}
        self._aliases: dict[int, list[str]] = {}  # every name of a parameter, its own first
        for name, parameter in weight_tensors(model, remove_duplicate=False):
            self._shapes[name] = tuple(parameter.shape)
            self._aliases.setdefault(id(parameter), []).append(name)
        self._fixed = fixed_values(model)
        self._table = names.table(spec, self._shapes)
        self._available = self._by_plain_name()
        self._used: set[str] = set()
        self._copies: list[_Copy] = []
        self._nameless: list[str] = []
        self._missing: dict[str, str] = {}  # stored name -> a parameter in it
        self._misshapen: dict[str, str] = {}  # stored name -> its fault
        self._unreadable: dict[str, str] = {}

    def _by_plain_name(self) -> dict[str, StoredTensor]:
        plain: dict[str, StoredTensor] = {}
        for name, stored in self._files.tensors.items():
            key = self._names.plain(name)
            if key in plain:
                raise WeightError(
                    f"{self._files.path} has one tensor twice: as {plain[key].name} and as {name}"
                )
            plain[key] = stored
        return plain

    def find(self) -> None:
        """Look up every parameter, and collect the faults."""
        for names in self._aliases.values():
            slots = [self._as_stored(slot) for slot in map(self._table.find, names) if slot is not None]
            self._used.update(
                name
                for slot in slots
                for stored in slot.stored
                for name in slot.names(stored)
                if name in self._available
            )
            present = [(stored, slot) for slot in slots if (stored := self._first_of(slot))]
            if not present and names[0] in self._fixed:
                self.match.fixed[names[0]] = self._fixed[names[0]]
            elif not slots:
                self._nameless.append(names[0])
            elif not present:
                self._miss(slots[0].names(slots[0].stored[0]), names[0])
            else:
                self._take(names[0], present)
        unread = set(self._names.unread(self._available))
        self.match.unused = {
            name: stored for name, stored in self._available.items() if name not in self._used
        }
        left_over = [
            name
            for name, stored in self.match.unused.items()
            if name not in unread and 0 not in stored.shape  # a part of width 0, such as no shared experts
        ]
        self.match.ignored = sorted(name for name in left_over if self._names.is_optional(name))
        self._left_over = sorted(name for name in left_over if not self._names.is_optional(name))

    def _as_stored(self, slot: StoredParameter) -> StoredParameter:
        """Return a slot, or the slot of stacked experts if the files have these instead."""
        stacked = None if self._first_of(slot) else stacked_experts(slot, self._shapes)
        return stacked if stacked is not None and self._first_of(stacked) else slot

    def _first_of(self, slot: StoredParameter) -> tuple[str, ...]:
        """Return the plain names under which a slot's tensor, or some of its tensors, are stored."""
        alternatives = map(slot.names, slot.stored)
        return next((names for names in alternatives if any(name in self._available for name in names)), ())

    def _miss(self, names: Iterable[str], parameter: str) -> None:
        for name in names:
            self._missing.setdefault(name, parameter)

    def _take(self, parameter: str, present: list[tuple[tuple[str, ...], StoredParameter]]) -> None:
        first: tuple[StoredTensor, ...] = ()
        for names, slot in present:
            self._miss((name for name in names if name not in self._available), parameter)
            stored = tuple(self._available[name] for name in names if name in self._available)
            first = first or stored
            whole = [self._shapes[part] for part in slot.parameters]
            shapes = slot.part_shapes(whole)
            moved = slot.sections and _rows(stored) == sum(rows for _, rows in slot.sections)
            for row, (name, one) in enumerate(zip(names, stored, strict=False)):
                wanted = slot.transform.stored_shape(slot.part_shapes(whole, row))
                if one.dtype is None:  # codes, whose shape is another matter
                    self._unreadable[name] = f"{one.name} {kind_fault(one.kind)}"
                elif one.shape != wanted and not (moved and one.shape[1:] == wanted[1:]):
                    fault = f"{one.name} is {_shown(one.shape)}, and {parameter} needs {_shown(wanted)}"
                    self._misshapen.setdefault(name, fault)
            if stored[0] is first[0]:
                self.match.locations[parameter] = TensorLocation(stored, slot, shapes)
            else:
                self._copies += [_Copy(parameter, *pair) for pair in zip(first, stored, strict=False)]

    @property
    def faulty(self) -> bool:
        """Whether any fault was found."""
        return any(self._faults().values())

    def _faults(self) -> dict[str, list[str]]:
        """Return the faults of each kind."""
        return {
            f"without a name in {self._names.name} checkpoints": self._nameless,
            "missing": list(self._missing),
            "unused": [self._available[name].name for name in self._left_over],
            "of another dtype": list(self._unreadable.values()),
            "of another shape": list(self._misshapen.values()),
        }

    def raise_faults(self) -> None:
        """Raise one error for all faults."""
        family, faults = self._names.name, self._faults()
        counts = [f"{len(items)} {what}" for what, items in faults.items() if items]
        if not counts:
            return
        fit = len(self.match.locations) - len(self._misshapen)
        what = (
            "does not fit the spec"
            if 2 * fit >= len(self._aliases)
            else f"has the weights of another model than {self._spec.name}"
        )
        lines = [f"{self._files.path} {what} (tensor names of {family}): {', '.join(counts)}"]
        for what, items in faults.items():
            lines += [f"  {what}: {printable(self._explained(item))}" for item in items[:_LISTED]]
            if len(items) > _LISTED:
                lines.append(f"  {what}: ... and {len(items) - _LISTED} more")
        lines += [f"  {remedy}" for remedy in self._remedies()]
        raise WeightError("\n".join(lines))

    def _explained(self, item: str) -> str:
        """Return a missing tensor with its parameter and a similar unused name; other faults unchanged."""
        if item not in self._missing:
            return item
        text = item if self._names is OWN else f"{item} (for {self._missing[item]})"
        others = [
            name for name in self._left_over[:_CONSIDERED] if _NUMBER.sub("#", name) != _NUMBER.sub("#", item)
        ]
        close = difflib.get_close_matches(item, others, n=1, cutoff=0.85)
        return f"{text}: did you mean {close[0]!r}?" if close else text

    def _remedies(self) -> Iterator[str]:
        """Return possible explanations of the faults."""
        if _further_layers(self._left_over, [*self._used, *self._missing]):
            yield "The checkpoint has more layers than the spec."
        if _further_layers(self._missing, self._available):
            yield "The checkpoint has fewer layers than the spec."
        if "head.vocabulary.weight" in self._missing.values():
            yield "If the checkpoint ties its embeddings, set head.tie_embeddings: true."
        yield from (remedy for name, remedy in self._names.remedies.items() if name in self._missing)
        if (self._files.path / "config.json").is_file() and self.match.locations:
            yield "To derive weights for this spec from those of the checkpoint, use zoo adapt."

    def check_copies(self) -> None:
        """Raise :class:`WeightError` where tensors that the model shares differ in the checkpoint."""
        different = [copy for copy in self._copies if not _equal(copy.first, copy.second)]
        if not different:
            return
        lines = [f"{self._files.path} has different values for tensors that the spec shares:"]
        for copy in different[:_LISTED]:
            lines.append(f"  {copy.first.name} and {copy.second.name} (both {copy.parameter})")
        if len(different) > _LISTED:
            lines.append(f"  ... and {len(different) - _LISTED} more")
        raise WeightError(
            "\n".join([*lines, "  If it is the head's matrix, set head.tie_embeddings: false."])
        )


_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")


def _layers(names: Iterable[str]) -> set[str]:
    """Return the layers of some names, such as ``h.7``."""
    starts = (re.match(r"[^\d]*\.\d+\.", name) for name in names)
    return {start[0] for start in starts if start}


def _further_layers(names: Iterable[str], known: Iterable[str]) -> bool:
    """Return whether some names are in layers beyond the known ones."""
    reached = _layers(known)
    kinds = {_NUMBER.sub("#", layer) for layer in reached}
    return any(_NUMBER.sub("#", layer) in kinds for layer in _layers(names) - reached)


def _rows(stored: Sequence[StoredTensor]) -> int:
    """Return the rows of several tensors together."""
    return sum(tensor.shape[0] for tensor in stored if tensor.shape)


def _shown(shape: Shape) -> str:
    return " x ".join(map(str, shape)) or "a scalar"


def _equal(first: StoredTensor, second: StoredTensor) -> bool:
    pairs = zip(_flat(first), _flat(second), strict=True)
    return all(torch.equal(x.float(), y.float()) for x, y in pairs)


def _flat(stored: StoredTensor) -> Iterator[Tensor]:
    """Yield the values of a tensor in order, piece by piece."""
    if stored.extent is not None and stored.dtype is not None and stored.outline().is_contiguous():
        return read_pieces(stored.path, stored.name, stored.dtype, stored.extent, _COMPARED)
    return iter(stored.read().flatten().split(_COMPARED))
