"""HTML from the templates of this package, in which every value is escaped unless it is :class:`markupsafe.Markup`."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from zoo.core.units import byte_text, count_text


def render(name: str, **values: Any) -> str:
    """Return the HTML of a template with some values."""
    return _environment().get_template(name).render(**values)


def part(name: str, *values: Any) -> Markup:
    """Return the HTML of a macro in ``parts.html`` with some values."""
    markup: Markup = getattr(_environment().get_template("parts.html").module, name)(*values)
    return markup


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("zoo.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.do"],
    )
    made.filters.update(bytes=byte_text, count=count_text)
    return made
