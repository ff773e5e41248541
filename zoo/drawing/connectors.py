"""Connectors in drawings: the end of a stack of images, and the place where its vectors get among tokens."""

from __future__ import annotations

from collections.abc import Iterator

from specs.connector import ConnectorKind, LinearConnector, MlpConnector
from specs.model import Model
from zoo.drawing import wording
from zoo.drawing.diagram import Element, Inserted, Label, Part
from zoo.drawing.parameters import Counts
from zoo.drawing.wording import TIMES, sizes


def connector_elements(spec: Model, counts: Counts) -> Iterator[Element]:
    """The parts from the last hidden state of images to their vectors."""
    connector = spec.connector
    assert isinstance(connector, ConnectorKind)
    if not connector.class_token and not spec.packs_images:
        yield Part("other", "Patches alone")
    if connector.pool > 1:
        yield _squares("Average pooling", connector.pool)
    if connector.norm is not None:
        yield counts.part("norm", wording.title(connector.norm.kind), [], "connector.norm")
    if connector.shuffle > 1:
        yield _squares("Pixel shuffle", connector.shuffle)
    normed = ("connector.norm",)  # a part of its own
    match connector:
        case LinearConnector():
            width = counts.widths("connector.projection")
            yield counts.part("other", "Connector", [width], "connector", without=normed)
        case MlpConnector():
            up, down = (counts.widths(f"connector.{part}") for part in ("up", "down"))
            details = [up, wording.ACTIVATIONS[connector.activation], down]
            yield counts.part("other", "Connector", details, "connector", without=normed)
        case _:
            title = wording.title(connector.kind)
            yield counts.part("other", title, ["connector"], "connector", without=normed)
    if connector.deepstack is not None:
        layers = ", ".join(map(str, connector.deepstack.layers))
        yield counts.part("other", "DeepStack", (f"likewise after layers {layers}",), "deep_connectors")
    rows: list[str | int] = ["images", spec.vectors_per_image] if not spec.packs_images else []
    rows = rows or [f"N/{connector.square**2}"]
    yield Label("", sizes(*rows, spec.embedded_width))


def _squares(title: str, size: int) -> Part:
    return Part("other", title, (f"{size} {TIMES} {size} patches to one vector",))


def inserted(spec: Model) -> Inserted:
    """The place where the vectors of images get among tokens."""
    connector = spec.connector
    assert isinstance(connector, ConnectorKind)
    assert spec.decoder is not None
    seen = ", bidirectional" if spec.decoder.bidirectional else ""
    count = connector.deep_count
    deep = f", DeepStack after the first {count} layer{'s' * (count > 1)}" if count else ""
    return Inserted(f"in place of token {connector.token:,}{seen}{deep}")
