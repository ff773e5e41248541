"""The steps that embeddings, heads and connectors state, as parts of a drawing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from specs.base.words import SIZES, WIDTHS, Output, PartRole, Step, product
from zoo.drawing.diagram import Element, Joined, Label, Part
from zoo.drawing.parameters import Counts


class StepReader:
    """Makes the parts of the component at a path, whose parts have a role unless their step states another.

    ``keys`` is the path of the component in the spec, ``apart`` the paths of submodules that other parts stand for.
    """

    def __init__(
        self, counts: Counts, path: str, keys: str, role: PartRole, apart: Iterable[str] = ()
    ) -> None:
        self._counts, self._path, self._keys, self._role = counts, path, keys, role
        self._apart = tuple(apart)

    def element(self, step: Step) -> Part | Joined:
        """The part of a step, on the stream or beside it."""
        part = self._part(step)
        return Joined(part, step.joins) if step.joins else part

    def _part(self, step: Step) -> Part:
        role = step.role or self._role
        if step.module is None:
            return Part(role, step.title, step.details, keys=self._keys)
        path = f"{self._path}.{step.module}" if step.module else self._path
        details = [self._filled(detail, path) for detail in step.details]
        without = () if step.module else self._apart
        return self._counts.part(role, step.title, details, path, self._keys, without)

    def _filled(self, detail: str, path: str) -> str:
        """A detail, with the sizes of the weight that it may stand for."""
        if detail == WIDTHS:
            return self._counts.widths(path)
        return product(*self._counts.sizes(path)) if detail == SIZES else detail

    def head(self, steps: Iterable[Step | Output]) -> Iterator[Element]:
        """The elements of a head; its last output ends the stream."""
        *before, last = steps
        for step in before:
            yield Label(step.text, step.shape, "out") if isinstance(step, Output) else self.element(step)
        yield Label(last.text, last.shape, "end") if isinstance(last, Output) else self.element(last)
