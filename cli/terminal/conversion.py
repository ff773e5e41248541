"""Values of parameters without the validators that Typer builds for each of them, given or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


class Conversion:
    """The conversion of a parameter's value from the command line.

    Absent values and text need none.  For others Typer builds a validator of pydantic, whose modules take as long to import as all
    else that a listing does.
    """

    def __init__(self, of_typer: Callable[[], Any]) -> None:
        self.of_typer = of_typer

    def __call__(self) -> Conversion:
        """The conversion, as Typer asks for it."""
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value that the command gets.  Raises Typer's error for a value that does not convert."""
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        if param.type_descriptor.annotation in (str, list[str]):
            return list(value) if several else value
        return self.of_typer().coerce(value, param=param, ctx=ctx)


def convert_on_demand(parameters: Iterable[Any]) -> None:
    """Have Typer's validators built only for values that need them."""
    for parameter in parameters:
        if not isinstance(parameter.get_runtime_param, Conversion):
            parameter.get_runtime_param = Conversion(parameter.get_runtime_param)
