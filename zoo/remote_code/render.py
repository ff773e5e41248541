"""The text of copied definitions, under names that are unique in the file."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable

from zoo.remote_code.bindings import External, Key, RemoteCodeError
from zoo.remote_code.closure import NAMESPACE, Closure, Definition
from zoo.remote_code.pieces import Piece, Span

_CHECKER = re.compile(r"  # (?:type: ignore|noqa).*$", re.MULTILINE)
"""The comments that only this project's type checker and linter read."""
_ANY = External("Any", "from typing import Any")


class Renderer:
    """Writes definitions.  ``reserved``: names that the rest of the file has."""

    def __init__(self, closure: Closure, reserved: Iterable[str]) -> None:
        self._closure = closure
        self.imports: dict[str, str] = {}
        """The statements of imports, by the names that they bind."""
        self._add_aliases()
        self.definitions = closure.ordered()
        for definition in self.definitions:
            if definition.is_spec:
                self._import(NAMESPACE)
            for piece in definition.all_pieces():
                for needed in piece.imports:
                    self._import(needed)
                for names in self._kept_annotations(piece).values():
                    for _, target in names or ():
                        if isinstance(target, External):
                            self._import(target)
                    if names is None:
                        self._import(_ANY)
        self.names = self._named({*reserved, *self.imports})

    def text(self) -> str:
        """All definitions, with the imports that they need collected."""
        parts = [self._definition(definition) for definition in self.definitions]
        return "\n\n\n".join(parts)

    def _add_aliases(self) -> None:
        """Add the names of types that annotations use, if nothing else is needed for them."""
        changed = True
        while changed:
            changed = False
            for definition in [*self._closure.definitions.values()]:
                for piece in definition.all_pieces():
                    for names in piece.annotations.values():
                        for _, target in names:
                            if isinstance(target, Key) and self._is_alias(target):
                                self._closure.add(target)
                                changed = True

    def _is_alias(self, key: Key) -> bool:
        """Whether a definition that is not in the file is an assignment of what is."""
        if key in self._closure.definitions:
            return False
        trial = Closure(self._closure.resolver.packages)
        trial.add(key)
        first = trial.definitions[key]
        needed = set(trial.definitions) - {key}
        return isinstance(first.node, ast.Assign) and needed <= set(self._closure.definitions)

    def _kept_annotations(self, piece: Piece) -> dict[Span, list[tuple[Span, Key | External]] | None]:
        """The names in each annotation, or None for an annotation with a name that is not in the file."""
        known = self._closure.definitions
        return {
            span: names if all(isinstance(t, External) or t in known for _, t in names) else None
            for span, names in piece.annotations.items()
        }

    def _import(self, needed: External) -> None:
        if self.imports.setdefault(needed.name, needed.statement) != needed.statement:
            raise RemoteCodeError(
                f"{self.imports[needed.name]} and {needed.statement} cannot be in one file of remote code\n"
                "  Import one of them under another name."
            )

    def _named(self, taken: set[str]) -> dict[Key, str]:
        """A name for every definition: its own, unless another has it, or a function binds it where it is read."""
        shadowed: set[Key] = set()
        for definition in self.definitions:
            for piece in definition.all_pieces():
                shadowed |= {
                    key for key in piece.edits.values() if isinstance(key, Key) and key.name in piece.local
                }
        names: dict[Key, str] = {}
        for definition in self.definitions:
            key, name = definition.key, definition.key.name
            if name in taken or key in shadowed:
                name = f"{key.module.rpartition('.')[2]}_{key.name.lstrip('_')}"
            while name in taken:
                name += "_"
            taken.add(name)
            names[key] = name
        return names

    def _definition(self, definition: Definition) -> str:
        name = self.names[definition.key]
        if not isinstance(definition.node, ast.ClassDef):
            text = "\n".join(self._piece(piece) for piece in definition.pieces)
            return _renamed(text, definition.key.name, name)
        if definition.is_spec:
            header = f"class {name}(SimpleNamespace):"
            if docstring := ast.get_docstring(definition.node, clean=False):
                header += f'\n    """{docstring}"""'
        else:
            header = _renamed(self._piece(definition.pieces[0]), definition.key.name, name)
        text = header.rstrip()
        for member in definition.members:
            for piece in definition.used.get(member, ()):
                body = self._piece(piece)
                spaced = body.lstrip().startswith(("def ", "@")) or text.endswith('"""')
                text += ("\n\n" if spaced else "\n") + body
        return text if text != header.rstrip() or header.rstrip().endswith('"""') else f"{text}\n    pass"

    def _piece(self, piece: Piece) -> str:
        """The lines of a piece with the file's names in them."""
        lines = list(piece.source.lines)
        edits = {span: self._name(target) for span, target in piece.edits.items()}
        for span, names in self._kept_annotations(piece).items():
            if names is None:
                edits[span] = "Any"
            else:
                edits |= {inner: self.names[t] for inner, t in names if isinstance(t, Key)}
        for (first, begin, last, end), text in sorted(edits.items(), reverse=True):
            tail = lines[last - 1][end:]
            lines[first - 1] = lines[first - 1][:begin] + text.encode() + tail
            for number in range(first, last):
                lines[number] = b""
        kept = [
            lines[number - 1] for number in range(piece.first, piece.last + 1) if number not in piece.skipped
        ]
        return _CHECKER.sub("", b"\n".join(kept).decode()).rstrip()

    def _name(self, target: Key | str) -> str:
        return target if isinstance(target, str) else self.names[target]


def _renamed(text: str, old: str, new: str) -> str:
    """A definition under a name: the first occurrence of the old one, which is where it is defined."""
    return text if old == new else re.sub(rf"\b{re.escape(old)}\b", new, text, count=1)


def import_lines(statements: Iterable[str]) -> list[str]:
    """Imports in order, the names of one module in one line."""
    plain: set[str] = set()
    members: dict[str, set[str]] = {}
    for statement in statements:
        if statement.startswith("from "):
            module, _, name = statement.removeprefix("from ").partition(" import ")
            members.setdefault(module, set()).update(name.split(", "))
        else:
            plain.add(statement)
    lines = [
        *sorted(plain),
        *(f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(members.items())),
    ]
    return sorted(lines, key=lambda line: line.split()[1].partition(".")[0] not in sys.stdlib_module_names)
