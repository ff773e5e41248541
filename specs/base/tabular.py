"""Base of results that print as tables, in terminals and in notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from specs.base.printable import printable

if TYPE_CHECKING:
    from specs.base.result_table import ResultTable


class Tabular:
    """Base of results that print as a table, display as one in notebooks, and have the table's title as their repr."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Give every subclass the repr, so that neither a dataclass nor pydantic writes one with all fields."""
        super().__init_subclass__(**options)
        cls.__repr__ = Tabular.__repr__  # type: ignore[method-assign]

    def table(self) -> ResultTable:
        """The table, with the verdict and the key figures in its title."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {printable(self.table().title)}; print() for the table>"

    def __str__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()
