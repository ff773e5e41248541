"""Architecture drawings: residual streams, norms, repeated layers, and the parameters of each part.

A spec is read into a :mod:`diagram <zoo.drawing.diagram>`, the content of the drawing; its layout is a
:mod:`scene <zoo.drawing.scene>`, with coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os

    from specs.model.model import Model
    from zoo.drawing.scene import Scene
    from zoo.reports.folding import Folded


@dataclass(frozen=True, repr=False)
class Picture:
    """The drawing of a model."""

    spec: Model

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.spec.name}; save() writes {', '.join(FORMATS)}>"

    def _repr_svg_(self) -> str:
        """The SVG that a notebook displays."""
        return draw_svg(self.spec)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the drawing in the format of the file extension: .svg, .png, or .md and .mmd for Mermaid.

        Raises :class:`specs.base.errors.UserError` for another extension, or if the libraries for PNG are missing.
        """
        file = Path(path)
        file.write_bytes(drawn(self.spec, file))


FORMATS = {".svg": "svg", ".png": "png", ".mmd": "mermaid", ".md": "mermaid"}
"""The file content for an extension."""


def drawn(spec: Model, path: Path, scale: float = 2.0) -> bytes:
    """The content of a file with the drawing of a model, in the format of the file extension.

    Raises :class:`specs.base.errors.UserError` for another extension.
    """
    from specs.base.errors import UserError

    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise UserError(f"{path} has no known picture extension\n  Use {', '.join(FORMATS)}.")
    content = content_of(spec, FORMATS[ending], scale)
    return b"```mermaid\n" + content + b"```\n" if ending == ".md" else content


def content_of(spec: Model, kind: str, scale: float) -> bytes:
    """The drawing of a model as svg, png or mermaid."""
    if kind == "png":
        return draw_png(spec, scale)
    return (draw_svg(spec) if kind == "svg" else draw_mermaid(spec)).encode()


def draw_scene(spec: Model, folded: Folded | None = None) -> Scene:
    """The drawing of a model as boxes, arrows and text with coordinates; ``folded``: the model, if built before."""
    from zoo.drawing.layout import lay_out
    from zoo.drawing.reading import read

    return lay_out(read(spec, folded))


def draw_svg(spec: Model, folded: Folded | None = None) -> str:
    """The drawing of a model as an SVG document; inlined in a page, it takes the page's colours.

    ``folded``: the model, if built before.
    """
    from zoo.drawing.svg import svg

    return svg(draw_scene(spec, folded))


def draw_png(spec: Model, scale: float = 2.0) -> bytes:
    """The drawing of a model as a PNG file, with ``scale`` pixels for each of the SVG's.

    Raises :class:`specs.base.errors.UserError` if the libraries for PNG are missing or the picture would be too large.
    """
    from zoo.drawing.png import png

    return png(draw_scene(spec), scale)


def draw_mermaid(spec: Model) -> str:
    """The drawing of a model as a Mermaid flowchart."""
    from zoo.drawing.mermaid import mermaid
    from zoo.drawing.reading import read

    return mermaid(read(spec))
