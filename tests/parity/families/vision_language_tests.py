"""The checks of every vision-language family, as :mod:`tests.parity.families.harness` has them for others."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from exporters.export import export
from exporters.preprocessing.packed import PackedImages
from exporters.runtime.embedding import ImageEmbedder
from exporters.runtime.exported import open_export
from exporters.runtime.generation import Generator
from exporters.steps.options import ExportOptions
from specs.kinds.connector import ConnectorKind
from specs.kinds.packed_patches import PackedPatches
from specs.model.model import Model
from tests.parity.families.family import FamilyTests
from tests.parity.families.harness import TOLERANCE, Prepare, converted, prepared
from tests.parity.families.in_memory import check_in_memory_layout
from tests.parity.families.recorded import RECORDED, Parity
from tests.parity.reference import difference, load
from zoo.configs.importing import import_spec

NEW_TOKENS, STEPS = 6, 2

Inputs = Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]]
"""Our input names -> the reference's."""


def check(
    model_class: type,
    config: Any,
    directory: Path,
    *,
    seed: int = 1,
    prepare: Prepare | None = None,
    onnx: bool = True,
    verify: bool = False,
    fuzzed: bool = False,
    without: Sequence[str] = (),
    by_row: bool = False,
    marked: bool = False,
) -> Model:
    """Put one configuration through import, PyTorch, ONNX Runtime, gradients and conversion.

    ``without``: the beginnings of the names of tensors of the reference that no output depends on. ``by_row``: the reference
    reads the images of each row apart. ``marked``: it is given the tokens that are of images, as its processor marks them.
    """
    reference = prepared(model_class, config, seed, prepare)
    reference.save_pretrained(directory / "reference")
    spec = import_spec(directory / "reference")
    theirs: Inputs = (
        partial(by_row_inputs, spec) if by_row else partial(marked_inputs, spec) if marked else dict
    )
    if spec.packs_images:
        theirs = partial(typed, spec) if spec.head.predicts_next else by_image_inputs
    ours = load(spec, directory / "reference")
    check_in_memory_layout(reference, spec, ours, directory / "in-memory", directory / "reference")
    result = Parity(reference.config.model_type, fuzzed=fuzzed)
    given = drawn_inputs(spec, seed)
    expected = scores(reference, theirs(given))
    result.pytorch = max(
        difference(scores(ours, given), expected),
        _in_steps(ours, given, reference, _after_prompt(spec, theirs(given))),
        _without_images(reference, ours, given, theirs),
    )
    _assert_allowed(result.pytorch, ours, given)
    _check_gradients(reference, ours, given, theirs)
    if onnx:
        export(spec, directory / "onnx", ExportOptions(weights=str(directory / "reference"), verify=verify))
        exported = open_export(directory / "onnx")
        result.onnx = _exported_scores(exported, given, expected)
        _assert_allowed(result.onnx, ours, given)
        if spec.head.predicts_next:
            _check_generation(reference, exported, theirs, given)
    back = converted(spec, directory, reference, tuple(without))
    _assert_allowed(difference(scores(back, theirs(given)), expected), ours, given)
    RECORDED.results.append(result)
    return spec


def drawn_inputs(spec: Model, seed: int) -> dict[str, Tensor]:
    """Two rows of tokens, the second padded on the left: two images in the first, one in the second."""
    connector = spec.connector
    assert isinstance(connector, ConnectorKind)
    assert spec.image is not None
    assert spec.vocab_size is not None
    generator = torch.Generator().manual_seed(seed)
    if spec.packs_images:
        return _packed_inputs(spec, connector, generator)
    vectors = spec.vectors_per_image
    length = 2 * vectors + 7
    ids = torch.randint(spec.vocab_size, (2, length), generator=generator)
    ids[ids == connector.token] = (connector.token + 1) % spec.vocab_size
    mask = torch.ones_like(ids)
    mask[1, :3] = 0
    for row, start in ((0, 1), (0, vectors + 3), (1, 5)):
        ids[row, start : start + vectors] = connector.token
    shape = spec.embedding_of(spec.image).input_shape(None)
    pixels = torch.randn((3, *shape), generator=generator)
    return {"input_ids": ids, "attention_mask": mask, "pixel_values": pixels}


SHAPES = ((5, 3), (1, 1), (2, 4))
"""The rows and columns of vectors of images of any size."""


def _packed_inputs(spec: Model, connector: ConnectorKind, generator: torch.Generator) -> dict[str, Tensor]:
    """As ``drawn_inputs``, with images of different sizes."""
    assert spec.image is not None
    embedding, square = spec.embedding_of(spec.image), connector.square
    assert isinstance(embedding, PackedPatches)
    counts = [rows * columns for rows, columns in SHAPES]
    length = sum(counts[:2]) + 9
    ids = torch.randint(10, (2, length), generator=generator)  # below all tokens of images
    mask = torch.ones_like(ids)
    mask[1, :3] = 0
    for (row, start), count in zip(((0, 1), (0, counts[0] + 4), (1, 5)), counts, strict=True):
        ids[row, start : start + count] = connector.token
    grids = torch.tensor([[1, rows * square, columns * square] for rows, columns in SHAPES])
    pixels = torch.randn((int(grids.prod(1).sum()), embedding.patch_width), generator=generator)
    return {"input_ids": ids, "attention_mask": mask, "pixel_values": pixels, "image_grid_thw": grids}


def scores(model: Any, given: Mapping[str, Tensor]) -> Tensor:
    """The scores at real tokens, or the vectors of a model for retrieval."""
    with torch.no_grad():
        logits = of_tokens(model(**given))
    return logits[given["attention_mask"] == 1]


def of_tokens(outputs: Any) -> Tensor:
    """The scores of tokens, or their vectors as we or the reference name them."""
    names = ("logits", "token_embeddings", "embeddings", "last_hidden_state")
    found: Tensor = next(outputs[name] for name in names if name in outputs)
    return found


def _assert_allowed(found: float, ours: Any, given: Mapping[str, Tensor]) -> None:
    """A difference is within the tolerance, or what rounding explains: some configurations magnify it."""
    allowed = TOLERANCE
    if found > TOLERANCE:
        wide = {**given, "pixel_values": given["pixel_values"].double()}
        exact = scores(copy.deepcopy(ours).double(), wide).float()
        allowed = max(TOLERANCE, 8 * difference(scores(ours, given), exact))
    assert found <= allowed, f"differs by {found:.2e}, and {allowed:.2e} is allowed"


def _after_prompt(spec: Model, given: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """The inputs where the last tokens follow a prompt whose tokens see each other; otherwise unchanged."""
    assert spec.decoder is not None
    if spec.decoder.bidirectional != "prompt":
        return given
    types = given["token_type_ids"].clone()
    types[:, -STEPS:] = 1
    return {**given, "token_type_ids": types}


@torch.no_grad()
def _in_steps(ours: Any, given: Mapping[str, Tensor], reference: Any, theirs: Mapping[str, Tensor]) -> float:
    """The largest difference of decoding the last tokens one by one; 0 where the reference has no cache."""
    if ours.bidirectional == "windows":
        return 0.0
    expected = scores(reference, theirs)
    ids, mask = given["input_ids"], given["attention_mask"]
    start = ids.shape[1] - STEPS
    images = {name: given[name] for name in ("pixel_values", "image_grid_thw") if name in given}
    found = ours(ids[:, :start], mask[:, :start], **images)
    parts = [of_tokens(found)]
    places = ours.coordinates(ids, mask, given["image_grid_thw"]) if ours.rotates_by_axis else None
    for end in range(start + 1, ids.shape[1] + 1):
        at = {} if places is None else {"position_ids": places[:, :, end - 1 : end]}
        found = ours(ids[:, end - 1 : end], mask[:, :end], found.present_key_values, **at)
        parts.append(of_tokens(found))
    return difference(torch.cat(parts, 1)[mask == 1], expected)


def _without_images(reference: Any, ours: Any, given: Mapping[str, Tensor], theirs: Inputs) -> float:
    text = {name: given[name] for name in ("input_ids", "attention_mask")}
    return difference(scores(ours, text), scores(reference, theirs(text)))


def _check_gradients(reference: Any, ours: Any, given: Mapping[str, Tensor], theirs: Inputs) -> None:
    """The gradients by the pixels are equal up to the tolerance, or to what rounding explains."""
    found, expected = _gradient(ours, given, dict), _gradient(reference, given, theirs)
    if difference(found, expected) > TOLERANCE:
        exact = _gradient(copy.deepcopy(ours).double(), given, dict)
        assert difference(found, expected) <= 8 * difference(found, exact)


def _gradient(model: Any, given: Mapping[str, Tensor], inputs: Inputs) -> Tensor:
    """The gradient of a weighted sum of all scores, by the pixels."""
    dtype = next(model.parameters()).dtype
    pixels = given["pixel_values"].detach().to(dtype, copy=True).requires_grad_()
    logits = of_tokens(model(**inputs({**given, "pixel_values": pixels})))[given["attention_mask"] == 1]
    weights = torch.linspace(-1, 1, logits.numel(), dtype=dtype).reshape(logits.shape)
    (found,) = torch.autograd.grad((logits * weights).sum(), [pixels])
    return found.float()


def _exported_scores(exported: Any, given: Mapping[str, Tensor], expected: Tensor) -> float:
    """The largest difference of the three graphs, for all tokens of the first row at once."""
    embedder, graph = ImageEmbedder(exported), exported.open(2)
    images, grids = given["pixel_values"].numpy(), given.get("image_grid_thw")
    numbers = None if grids is None else grids.numpy()
    seen = embedder.encode_images(images if numbers is None else PackedImages(images, numbers))
    embedded = embedder.embed(given["input_ids"].numpy(), seen, numbers, given["attention_mask"].numpy())
    rows = len(given["input_ids"])
    mask = given["attention_mask"]
    feeds = {**embedded, "attention_mask": mask.numpy()}
    for name, slot in graph.inputs.items():
        if name not in feeds:
            sizes = {"batch_size": rows, "past_sequence_length": 0}
            shape = [sizes[dim] if isinstance(dim, str) else dim for dim in slot.dims]
            feeds[name] = torch.zeros(shape).numpy()
    name = next(iter(graph.outputs))
    logits = graph.run(feeds, {name: "cpu"})[name].numpy()
    return difference(torch.from_numpy(logits)[mask == 1], expected)


def _check_generation(reference: Any, exported: Any, theirs: Inputs, given: Mapping[str, Tensor]) -> None:
    """The same tokens as the reference generates after the first row."""
    ids, images = given["input_ids"][:1], {"pixel_values": given["pixel_values"][:2]}
    if "image_grid_thw" in given:
        grids = given["image_grid_thw"][:2]
        patches = int(grids.prod(1).sum())
        images = {"pixel_values": given["pixel_values"][:patches], "image_grid_thw": grids}
    with torch.no_grad():
        told = reference.generate(
            **theirs({"input_ids": ids, **images}), attention_mask=torch.ones_like(ids),
            max_new_tokens=NEW_TOKENS, do_sample=False, pad_token_id=0,
        )  # fmt: skip
    arrays = [each.numpy() for each in images.values()]
    seen = PackedImages(*arrays) if len(arrays) > 1 else arrays[0]
    found = Generator(exported).generate(ids.tolist(), NEW_TOKENS, images=seen)
    assert found.continuations[0].ids == told[0, ids.shape[1] :].tolist()


def marked_inputs(spec: Model, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inputs with token types: 1 for the placeholders of images, or 0 for the tokens of a prompt."""
    assert isinstance(spec.connector, ConnectorKind)
    assert spec.decoder is not None
    of_images = given["input_ids"] == spec.connector.token
    return {**given, "token_type_ids": of_images.long() * (spec.decoder.bidirectional == "image")}


def typed(spec: Model, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inputs with the types of tokens, 1 for placeholders, where there are images."""
    assert isinstance(spec.connector, ConnectorKind)
    if "pixel_values" not in given:
        return dict(given)
    return {**given, "mm_token_type_ids": (given["input_ids"] == spec.connector.token).int()}


def by_image_inputs(given: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inputs of a reference that reads the patches of each image apart, padded with zeros."""
    if "pixel_values" not in given:
        return dict(given)
    counts = given["image_grid_thw"].prod(1).tolist()
    return {**given, "pixel_values": pad_sequence(given["pixel_values"].split(counts), batch_first=True)}


def by_row_inputs(spec: Model, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inputs of a reference that reads images as B x the largest number per row, padded with zeros."""
    connector, pixels = spec.connector, given.get("pixel_values")
    if pixels is None:
        return dict(given)
    assert isinstance(connector, ConnectorKind)
    counts = (given["input_ids"] == connector.token).sum(1) // spec.vectors_per_image
    return {**given, "pixel_values": pad_sequence(pixels.split(counts.tolist()), batch_first=True)}


class VisionLanguageTests(FamilyTests):
    """A vision-language model."""

    defaults = {}
    run = staticmethod(check)
    drawn = {"onnx": False}


HEADS = st.sampled_from([2, 4])
ENCODER_WIDTH = st.integers(1, 3).map(lambda quarter: 12 * quarter)
"""The width of an encoder with 3 heads, whose pairs rotate by rows and by columns."""
PATCH = st.integers(2, 4)
"""The side of a patch; a patch of one value has only a sign after the norm of the first layer."""


def draw_text(data: st.DataObject, heads: int) -> dict[str, Any]:
    """The sizes of a decoder."""
    return dict(
        hidden_size=heads * data.draw(st.sampled_from([4, 6, 10]), "head_dim"),
        num_attention_heads=heads,
        num_hidden_layers=data.draw(st.integers(1, 3), "layers"),
    )
