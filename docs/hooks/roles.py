"""Griffe extension: the roles in docstrings, such as :class:`a.b.C`, as Markdown."""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":\w+:`~?(?:[\w.]*\.)?(\w+)`")


class Roles(griffe.Extension):
    """Replaces a role with the last part of the name that it points to, as code."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = _ROLE.sub(r"`\1`", obj.docstring.value)
