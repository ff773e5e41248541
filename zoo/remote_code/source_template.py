"""Python source from the templates of this package, which read as the classes that they become."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def render(template: str, /, **values: Any) -> str:
    """Return the source of a template with some values."""
    return _environment().get_template(f"{template}.py.jinja").render(**values)


def template(name: str) -> str:
    """Return a template as it is stored."""
    environment = _environment()
    assert environment.loader is not None
    return environment.loader.get_source(environment, f"{name}.py.jinja")[0]


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("zoo.remote_code"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
