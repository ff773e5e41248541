"""Connectors in drawings: the end of a stack of images, and the place where its vectors get among tokens."""

from __future__ import annotations

from collections.abc import Iterator

from specs.kinds.connector import ConnectorKind, LinearConnector, MlpConnector, ResamplerConnector
from specs.model.model import Model
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
    if connector.joined_norm is not None:
        yield counts.part("norm", wording.title(connector.joined_norm.kind), [], "connector.joined_norm")
    normed = ("connector.norm", "connector.joined_norm")  # parts of their own
    match connector:
        case LinearConnector():
            width = counts.widths("connector.projection")
            yield counts.part("other", "Connector", [width], "connector", without=normed)
        case MlpConnector():
            up, down = (counts.widths(f"connector.{part}") for part in ("up", "down"))
            details = [up, wording.ACTIVATIONS[connector.activation], down]
            yield counts.part("other", "Connector", details, "connector", without=normed)
        case ResamplerConnector():
            yield from _resampler(connector, spec, counts, normed)
        case _:
            title = wording.title(connector.kind)
            yield counts.part("other", title, ["connector"], "connector", without=normed)
    if connector.deepstack is not None:
        layers = ", ".join(map(str, connector.deepstack.layers))
        yield counts.part("other", "DeepStack", (f"likewise after layers {layers}",), "deep_connectors")
    rows: list[str | int] = ["images", spec.vectors_per_image] if not spec.packs_images else []
    rows = rows or [f"N/{connector.square**2}"]
    yield Label("", sizes(*rows, spec.embedded_width))


def _resampler(
    connector: ResamplerConnector, spec: Model, counts: Counts, normed: tuple[str, ...]
) -> Iterator[Element]:
    """The projection of the vectors, and the layers of queries that attend to it."""
    assert spec.image is not None
    block, width = connector.block, spec.output_width
    reads = connector.shuffle**2 * spec.width_of(spec.image)
    title = wording.feed_forward_title(connector.projection)
    projected = wording.feed_forward_details(connector.projection, width, reads)
    yield counts.part("feed-forward", title, projected, "connector.projection")
    details = [
        f"{connector.queries:,} queries",
        f"{connector.layers} layer{'s' * (connector.layers > 1)}",
        *wording.attention_details(block.attention, width, causal=False, cross=True),
        wording.feed_forward_words(block.feed_forward),
    ]
    outside = (*normed, "connector.projection")
    yield counts.part("other", wording.title(connector.kind), details, "connector", without=outside)


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
