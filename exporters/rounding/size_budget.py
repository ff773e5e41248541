"""The size budget of an export: bytes of its data file, or mean bits per quantized weight."""

from __future__ import annotations

import re
from dataclasses import dataclass

from specs.base.errors import UserError, option_name

_UNITS = {
    "": 1.0,
    "B": 1.0,
    **{f"{letter}B": 1000.0**power for power, letter in enumerate("kMGT", 1)},
    **{f"{letter}iB": 1024.0**power for power, letter in enumerate("KMGT", 1)},
}
_SIZE = re.compile(r"^(\d+(?:\.\d+)?)\s*([A-Za-z]*)$")


@dataclass(frozen=True)
class Size:
    """The size of a data file in bytes, and the mean bits per quantized weight, scales included."""

    data: int
    bits: float


@dataclass(frozen=True)
class SizeBudget:
    """The largest size allowed: ``most`` bytes of the data file, or bits per quantized weight."""

    text: str
    most: float
    per_weight: bool

    @classmethod
    def parse(cls, text: str) -> SizeBudget:
        """Read a budget such as 105MB, 110000000 or 4.8bits. Raises :class:`specs.base.errors.UserError`."""
        match = _SIZE.match(text.strip())
        unit = match[2] if match else ""
        known = {name.lower(): factor for name, factor in _UNITS.items()}
        per_weight = unit.lower() in ("bit", "bits")
        if match is None or not (per_weight or unit.lower() in known):
            raise _refused(text, "must be bytes, kB, MB, GB, MiB or GiB of the data file, or bits per weight")
        value = float(match[1]) * (1 if per_weight else known[unit.lower()])
        if per_weight and not 0 < value <= 32:
            raise _refused(text, "must be from 0 to 32 bits per weight")
        if not per_weight and value < 1:
            raise _refused(text, "must be 1 byte or more")
        return cls(text.strip(), value, per_weight)

    def allows(self, size: Size) -> bool:
        """Whether a size is within the budget."""
        return (size.bits if self.per_weight else size.data) <= self.most

    def smallest(self, size: Size) -> str:
        """A size in the unit of the budget, rounded up, so that ``parse`` reads it as a sufficient budget."""
        return f"{-(-size.bits * 1000 // 1) / 1000:.3f}bits" if self.per_weight else f"{size.data}"


def _refused(text: str, rule: str) -> UserError:
    return UserError(
        f"{option_name('budget')} {rule}\n  value: {text!r}\n  Pass a size such as 105MB or 4.8bits."
    )
