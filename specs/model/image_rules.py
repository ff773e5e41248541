"""The rules of models of text and images: the heads in which two encoders meet, and connectors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from specs.base.base import Component, Fault
from specs.base.errors import MISSING
from specs.model.stack import StackName

if TYPE_CHECKING:
    from specs.kinds.connector import ConnectorKind
    from specs.kinds.position import PositionKind
    from specs.model.model import Model


def meeting_faults(model: Model) -> Iterable[Fault]:
    """The violated rules of the heads of a dual encoder's stacks, and of the head in which they meet."""
    meets = model.architecture == "dual-encoder"
    if meets != model.head.meets:
        yield Fault(
            ("head", "kind"),
            "must be contrastive or detection in a dual encoder" if meets else "belongs to a dual encoder",
            model.head.kind,
            "Use contrastive." if meets else "Use another head, or architecture: dual-encoder.",
        )
    if model.head.gives_boxes:
        yield Fault(
            ("head", "kind"),
            "belongs to the images of a dual encoder with the head detection",
            model.head.kind,
            "Use another head.",
        )
    widths = dict[StackName, int | None]()
    for name, stack in model.stacks():
        head = stack.head
        if not meets:
            if head is not None:
                yield Fault(
                    (name, "head"),
                    "belongs to a stack of a dual encoder",
                    head.kind,
                    "Remove it: the model's own head reads the last stack.",
                )
            continue
        boxes = model.head.detects and name == "image"
        if head is None or not (head.gives_boxes if boxes else head.sequence_output is not None):
            yield _unfit_head(head, boxes=boxes).under(name)
            continue
        yield from (fault.under(name, "head") for fault in head.faults(model.rule_context(name, stack)))
        widths[name] = head.vector_width(model.width_of(stack))
    if len(set(widths.values())) > 1:
        yield Fault(
            ("image", "head", "projection"),
            "must give vectors as wide as those of the texts",
            widths["image"],
            f"Use {widths['text']}.",
        )
    if meets and not _reads_text_and_images(model):
        yield Fault(
            ("image", "embedding", "kind"),
            "must take images where text takes tokens",
            model.embedding_of(model.image).kind if model.image else None,
            "Use patches in image, and tokens in text.",
        )


def _unfit_head(head: Component | None, *, boxes: bool) -> Fault:
    """The fault of a stack of a dual encoder whose head gives no vectors, or no boxes if the model detects."""
    return Fault(
        ("head",),
        "must be of kind patch_boxes where the head is detection"
        if boxes
        else "must be of kind pooled in a dual encoder, which compares one vector per input",
        MISSING if head is None else head.kind,
        "Add head: {kind: patch_boxes, norm: {kind: layer_norm}, projection: 512}."
        if boxes
        else "Add head: {kind: pooled, projection: 512, normalize: true}.",
    )


def _reads_text_and_images(model: Model) -> bool:
    if model.text is None or model.image is None:
        return False
    read, seen = model.embedding_of(model.text), model.embedding_of(model.image)
    return read.takes_tokens and seen.input_name == "pixel_values"


def connector_faults(model: Model) -> Iterable[Fault]:
    """The violated rules of what lets images among tokens, and of what it joins."""
    connector, joins = model.connector, model.architecture == "vision-language"
    if joins != (connector is not None):
        yield Fault(
            ("connector",),
            f"{'is required by' if joins else 'does not belong to'} architecture: {model.architecture}",
            MISSING if connector is None else connector.kind,
            "Add connector: {kind: mlp, token: ID}." if joins else "Remove it.",
        )
    if connector is None or model.image is None or model.decoder is None:
        return
    faults = connector.faults(model.rule_context("decoder", model.decoder))
    yield from (fault.under("connector") for fault in faults)
    images = model.embedding_of(model.image)
    yield from _deepstack_faults(model, connector)
    if images.packed:
        yield from _packed_faults(model, connector)
    elif images.patch_grid is None:
        yield Fault(
            ("image", "embedding", "kind"),
            "must be patches or packed_patches",
            images.kind,
            "Add embedding: {kind: patches, ...}.",
        )
    elif images.patch_grid.rows % connector.pool:
        yield Fault(
            ("connector", "pool"),
            f"must divide the number of patches in a row, which is {images.patch_grid.rows}",
            connector.pool,
            "Use a divisor, such as 1.",
        )
    elif images.patch_grid.rows // connector.pool % connector.shuffle:
        pooled = "" if connector.pool == 1 else " after pooling"
        yield Fault(
            ("connector", "shuffle"),
            f"must divide the number of patches in a row{pooled}, which is {images.patch_grid.rows // connector.pool}",
            connector.shuffle,
            "Use a divisor, such as 1.",
        )
    if model.position_of(model.decoder).embedded:
        yield Fault(
            ("position", "kind") if model.decoder.position is None else ("decoder", "position", "kind"),
            "must act inside attention in a vision-language model, whose images have no position before",
            model.position_of(model.decoder).kind,
            "Use rope, alibi or relative_bias.",
        )


def _deepstack_faults(model: Model, connector: ConnectorKind) -> Iterable[Fault]:
    """The violated rules of vectors that are added after layers of the decoder."""
    if connector.deepstack is None:
        return
    layers = connector.deepstack.layers
    images, decoder = model.stack("image"), model.stack("decoder")
    if not model.embedding_of(images).packed:
        yield Fault(
            ("connector", "deepstack"),
            "requires images of any size",
            list(layers),
            "Remove it, or use packed_patches.",
        )
    elif list(layers) != sorted(layers) or layers[-1] >= images.depth:
        yield Fault(
            ("connector", "deepstack", "layers"),
            f"must be layers of the images in order, from 0 to {images.depth - 1}",
            list(layers),
            "Change the list.",
        )
    elif len(layers) > decoder.depth:
        yield Fault(
            ("connector", "deepstack", "layers"),
            f"must be at most {decoder.depth}, the layers of the decoder",
            list(layers),
            "Remove some.",
        )


def _flat_position_faults(position: PositionKind, *path: str) -> Iterable[Fault]:
    """A position that numbers the patches of images of any size one by one."""
    if not (position.of_patches or position.is_none):
        yield Fault(
            ("image", *path, "kind"),
            "must tell rows from columns in images of any size, or be none",
            position.kind,
            "Use axial_rope.",
        )


def _packed_faults(model: Model, connector: ConnectorKind) -> Iterable[Fault]:
    """The violated rules of images of any size: of their connector, and of what acts on their patches."""
    if connector.pool > 1:
        yield Fault(
            ("connector", "pool"),
            "must be 1 for images of any size, whose patches come by the squares that are joined",
            connector.pool,
            "Use shuffle.",
        )
    if not connector.takes_any_size:
        yield Fault(
            ("connector", "kind"),
            "must keep the vectors of images apart where these have any size",
            connector.kind,
            "Use mlp.",
        )
    if connector.class_token:
        yield Fault(
            ("connector", "class_token"),
            "must be false for images of any size, which have none",
            connector.class_token,
            "Remove it.",
        )
    images = model.stack("image")
    yield from _flat_position_faults(model.position_of(images), "position")
    for name in dict.fromkeys(run.use for run in images.runs()):
        block = images.block if name is None else images.blocks.get(name)  # the stack refuses other names
        attention = None if block is None else block.attention
        path = ("block",) if name is None else ("blocks", name)
        if attention is not None and attention.own_position is not None:
            yield from _flat_position_faults(attention.own_position, *path, "attention", "position")
        window = None if attention is None else attention.sliding_window
        if window is not None:
            yield Fault(
                ("image", *path, "attention", "window"),
                "counts tokens of a sequence, and patches have rows and columns",
                window,
                "Remove it.",
            )
