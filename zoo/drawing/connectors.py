"""Connectors in drawings: the end of a stack of images, and the place where its vectors get among tokens."""

from __future__ import annotations

from collections.abc import Iterator

from specs.base.words import TIMES, PartContext, product
from specs.model.model import Model
from zoo.drawing.diagram import Element, Inserted, Label, Part
from zoo.drawing.parameters import Counts
from zoo.drawing.steps import StepReader


def connector_elements(spec: Model, counts: Counts) -> Iterator[Element]:
    """The parts from the last hidden state of images to their vectors."""
    connector = spec.image_connector
    if not connector.class_token and not spec.packs_images:
        yield Part("other", "Patches alone", keys="connector.class_token")
    if connector.pool > 1:
        yield _squares("Average pooling", connector.pool, "connector.pool")
    if connector.norm is not None:
        yield counts.part("norm", connector.norm.heading, [], "connector.norm", "connector.norm")
    if connector.shuffle > 1:
        yield _squares("Pixel shuffle", connector.shuffle, "connector.shuffle")
    if connector.joined_norm is not None:
        path = "connector.joined_norm"
        yield counts.part("norm", connector.joined_norm.heading, [], path, path)
    reads = connector.shuffle**2 * spec.width_of(spec.stack("image"))
    steps = list(connector.steps(PartContext(spec.output_width, reads)))
    apart = ["connector.norm", "connector.joined_norm"]  # parts of their own
    apart += [f"connector.{step.module}" for step in steps if step.module]
    reader = StepReader(counts, "connector", "connector", "other", apart)
    yield from map(reader.element, steps)
    if connector.deepstack is not None:
        layers = ", ".join(map(str, connector.deepstack.layers))
        details = [f"likewise after layers {layers}"]
        yield counts.part("other", "DeepStack", details, "deep_connectors", "connector.deepstack")
    rows: list[str | int] = ["images", spec.vectors_per_image] if not spec.packs_images else []
    rows = rows or [f"N/{connector.square**2}"]
    yield Label("", product(*rows, spec.embedded_width))


def _squares(title: str, size: int, keys: str) -> Part:
    return Part("other", title, (f"{size} {TIMES} {size} patches to one vector",), keys=keys)


def inserted(spec: Model) -> Inserted:
    """The place where the vectors of images get among tokens."""
    connector = spec.image_connector
    seen = ", bidirectional" if spec.stack("decoder").bidirectional else ""
    count = connector.deep_count
    deep = f", DeepStack after the first {count} layer{'s' * (count > 1)}" if count else ""
    return Inserted(f"in place of token {connector.token:,}{seen}{deep}")
