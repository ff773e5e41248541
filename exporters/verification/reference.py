"""The reference of an export: the outputs of the PyTorch model."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from exporters.data.stored_weights import StoredWeight
from exporters.verification.cases import Batch, Case, without
from exporters.verification.layer_outputs import at_their_keys, is_weights, reported_name, reported_outputs
from exporters.verification.verified_model import VerifiedModel
from specs.model.model import Model
from zoo.builder import ZooModel, assemble
from zoo.components.head import token_outputs
from zoo.components.mixer import declared_state
from zoo.components.router import Router, routers_of
from zoo.core.graph_names import EMBEDDED, IMAGE_FEATURES
from zoo.core.progress import Progress, Stage
from zoo.layer_outputs.choice import LayerOutput
from zoo.layer_outputs.recording import recorded_outputs
from zoo.machine.memory import return_released
from zoo.models.dual_encoder import DualEncoder
from zoo.models.stack import stacks_of
from zoo.models.vision_language import VisionLanguage
from zoo.weights.materialize import materialize

DECISIVE = 1e-5
"""The relative margin by which the last chosen expert must beat the next one, so that rounding cannot change the
choice."""

DRAWS = 8
"""The largest number of draws of a case's tokens in search of such a margin."""

OF_ENCODER = "encoder "
ENCODED = f"{OF_ENCODER}last_hidden_state"
"""The prefix of the reported names of outputs of an encoder-decoder's encoder, and the name of the last."""

OF_IMAGE = "image "
VECTORS_PER_IMAGE = (OF_IMAGE, "logits_per_image", "image_embeds", IMAGE_FEATURES)
"""The prefix of the reported names of outputs of images' stacks, and the prefixes of all outputs for images."""

_WITH_TEXTS = " with texts"

_OF_PATCHES = ("logits", "pred_boxes", "class_embeds")

PRESENT = "present"
"""The reported name of the keys and values of all layers."""

STATE = "state"
"""The reported name of states without a length, all layers in one tensor."""

TakeStored = Callable[[ZooModel], Mapping[str, StoredWeight]]
"""Gives a model the stored weights, and returns the change of each."""


Run = Callable[[Any, Case], dict[str, Tensor]]
"""Returns all outputs of a model for a case at once."""


class Reference:
    """A model with its weights, in float32. It can be dropped from memory, and is restored on access."""

    def __init__(self, spec: Model, fill: Callable[[], ZooModel]) -> None:
        self.spec = spec
        self._fill = fill
        self._take_stored: TakeStored | None = None
        self._model: ZooModel | None = None
        self._filling = threading.Lock()

    @property
    def model(self) -> ZooModel:
        """The model, filled on first access."""
        with self._filling:
            if self._model is None:
                self._model = self._fill()
                if self._take_stored is not None:
                    self._take_stored(self._model)
            return self._model

    def take_stored(self, take_stored: TakeStored) -> Mapping[str, StoredWeight]:
        """Give the model the stored weights, now and whenever it is filled again."""
        stored, self._take_stored = take_stored(self.model), take_stored
        return stored

    def drop(self) -> None:
        """Release the memory of the weights."""
        self._model = None
        return_released()


def reference_of(subject: VerifiedModel, progress: Progress) -> Reference:
    """The model of a subject, filled on access."""

    def fill() -> ZooModel:
        progress(Stage("fill the model to compare with"))
        model = assemble(subject.spec)
        materialize(model, subject.source)
        return model

    return Reference(subject.spec, fill)


@dataclass(frozen=True, eq=False)
class ExpectedCase:
    """A case and its outputs by name: ``outputs`` with stored weights and cache, ``original`` with the original weights.

    ``run`` is the function that computed ``outputs``.
    """

    case: Case
    outputs: Mapping[str, Tensor]
    original: Mapping[str, Tensor]
    run: Run


@dataclass(frozen=True)
class Expected:
    """The model's outputs in every case, the change of each stored weight, and the names of outputs with a token axis.

    ``tied``: in every case a router chooses between experts with equal scores, and outputs are compared nonetheless.
    """

    cases: tuple[ExpectedCase, ...]
    weights: Mapping[str, StoredWeight]
    per_token: frozenset[str]
    tied: bool = False


def expect(
    reference: Reference,
    cases: Iterable[Case],
    progress: Callable[[str], None],
    written: Callable[[], None],
    take_stored: TakeStored | None,
    outputs: Sequence[LayerOutput] = (),
) -> Expected:
    """Run the full pass of every case with additional ``outputs``; ``written`` waits until the stored weights can be read."""
    model, spec, run = reference.model, reference.spec, partial(full_pass, outputs=outputs)
    expected = []
    for case in cases:
        progress(f"{case.name}, PyTorch")
        drawn, full = _decided(model, case, spec.vocab_size or 0, run)
        expected.append(ExpectedCase(drawn, full, full, run))
    written()
    weights: Mapping[str, StoredWeight] = {}
    if take_stored is not None:
        progress("the weights as they are stored, PyTorch")
        weights = reference.take_stored(take_stored)
        expected = [run_again(model, original, run) for original in expected]
    per_token = per_token_outputs(model) | {reported_name(spec, output) for output in outputs}
    comparable = [
        decided for decided in expected if decided.case.decided is None or bool(decided.case.decided.any())
    ]
    whole = [replace(decided, case=replace(decided.case, decided=None)) for decided in expected]
    return Expected(tuple(comparable or whole), weights, per_token, tied=not comparable)


def per_token_outputs(model: ZooModel) -> frozenset[str]:
    """The reported outputs with a token axis."""
    spec = model.spec
    if isinstance(model, DualEncoder):
        return frozenset(
            f"{name} {output}"
            for name, stack in spec.stacks()
            for output in token_outputs(model.get_submodule(f"{name}_head"), spec.width_of(stack))
        )
    return frozenset({ENCODED, PRESENT, EMBEDDED}) | token_outputs(model.head, spec.output_width)


def run_again(model: nn.Module, expected: ExpectedCase, run: Run) -> ExpectedCase:
    """Run a case again with the model's present weights, and keep only rows that are decided in all runs."""
    if not (routers := routers_of(model)):
        return replace(expected, outputs=run(model, expected.case), run=run)
    margins, outputs = _margins(model, expected.case, routers, run)
    decided = margins >= DECISIVE
    if expected.case.decided is not None:
        decided &= expected.case.decided
    case = expected.case if bool(decided.all()) else replace(expected.case, decided=decided)
    return ExpectedCase(case, outputs, expected.original, run)


def _image_routers(model: nn.Module) -> set[Router]:
    """The routers of an image encoder beside tokens, whose rows are images rather than token rows."""
    image = stacks_of(model).get("image")
    return set() if image is None else set(routers_of(image))


def _decided(model: nn.Module, case: Case, vocabulary: int, run: Run) -> tuple[Case, dict[str, Tensor]]:
    """Return a case and its full pass, with tokens redrawn while a router would choose between equal experts.

    A token whose last chosen expert ties with the next one may go to either, depending on rounding, and everything
    after it differs. If no draw is clear, the clearest one is used, restricted to its clear rows.
    """
    routers = routers_of(model)
    if not routers:
        return case, run(model, case)
    generator = torch.Generator().manual_seed(1)
    clearest, best = -1.0, None
    for _ in range(DRAWS):
        margins, outputs = _margins(model, case, routers, run)
        if best is None or float(margins.min()) > clearest:
            decided = margins >= DECISIVE
            clearest = float(margins.min())
            best = (case if bool(decided.all()) else replace(case, decided=decided), outputs)
        if clearest >= DECISIVE:
            break
        encoder = None if case.encoder is None else _redrawn(case.encoder, vocabulary, generator)
        batch = _redrawn(case.batch, vocabulary, generator)
        if case.placeholder is not None:
            batch = _with_placeholders(batch, case.batch, case.placeholder, vocabulary)
        case = replace(case, batch=batch, encoder=encoder)
    assert best is not None
    return best


def _redrawn(batch: Batch, vocabulary: int, generator: torch.Generator) -> Batch:
    if batch.inputs.is_floating_point():
        return replace(batch, inputs=torch.randn(batch.inputs.shape, generator=generator))
    return replace(batch, inputs=torch.randint(vocabulary, batch.inputs.shape, generator=generator))


def _with_placeholders(drawn: Batch, batch: Batch, token: int, vocabulary: int) -> Batch:
    """A redrawn batch with images at the same positions as in ``batch``."""
    others = without(drawn.inputs, token, vocabulary)
    return replace(drawn, inputs=torch.where(batch.inputs == token, token, others))


def _margins(
    model: nn.Module, case: Case, routers: Sequence[Router], run: Run
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return each row's narrowest router margin over its real tokens and all images, B, and the full pass."""
    narrowest = [torch.full((case.batch.inputs.shape[0],), math.inf)]
    masks = [batch.real == 1 for batch in (case.batch, case.encoder) if batch and batch.real is not None]
    of_images = _image_routers(model)

    def look(router: Router, args: tuple[Tensor], logits: Tensor) -> None:
        margins = router.margin(logits)  # B T
        if router in of_images:  # M N: each row may depend on any image
            narrowest.append(margins.amin().expand_as(narrowest[0]))
            return
        real = next((mask for mask in masks if mask.shape == margins.shape), None)
        narrowest.append((margins if real is None else margins.where(real, math.inf)).amin(1))

    hooks = [router.register_forward_hook(look) for router in routers]
    try:
        outputs = run(model, case)
    finally:
        for hook in hooks:
            hook.remove()
    return torch.stack(narrowest).amin(0), outputs


def full_pass(model: Any, case: Case, outputs: Collection[LayerOutput] = ()) -> dict[str, Tensor]:
    """Run a case in one full pass: all outputs by reported name, with additional ``outputs``, at the positions of the case's own
    padding."""
    with recorded_outputs(model, outputs) as recorded:
        results = _full_pass(model, case)
    more = reported_outputs(model.spec, recorded)
    if case.gap:
        more = {name: _placed(name, values, case.batch.mask) for name, values in more.items()}
    return results | more


def _placed(name: str, values: Tensor, mask: Tensor | None) -> Tensor:
    """An additional output at the positions of the tokens."""
    assert mask is not None
    placed = at_their_places(values.flatten(2), mask).unflatten(2, values.shape[2:])
    return at_their_keys(placed, mask) if is_weights(name) else placed


def _full_pass(model: Any, case: Case) -> dict[str, Tensor]:
    batch, encoder = case.batch, case.encoder
    if isinstance(model, DualEncoder):
        return _full_pair(model, case)
    batch = batch.closed_up() if case.gap else batch
    apart: dict[str, Tensor] = {}
    if isinstance(model, VisionLanguage):
        apart, x = _with_images(model, case, batch)
        positions = model.positions(x, batch.mask, None, None).with_lookahead(model.ahead(batch.inputs))
        positions = positions.along(coordinates_of(model, case, batch))
        if model.sees_prompt:
            assert case.batch.mask is not None
            positions = model.in_prompt(positions, case.batch.mask[:, : case.ends[0]].sum(1, keepdim=True))
        outputs = model.decode(x, positions, None)
    elif encoder is not None:
        encoded = model.encode(_inputs(encoder, model), encoder.mask, encoder.types)
        outputs = model.decode(
            batch.inputs, encoded.present_key_values, encoder.mask, decoder_attention_mask=batch.mask
        )
        apart = {ENCODED: encoded.last_hidden_state}
    else:
        outputs = model(_inputs(batch, model), batch.mask, token_type_ids=batch.types, **batch.beside)
    results = {**outputs}
    if outputs.present_key_values:
        declared = declared_state(model.decoder.states, outputs.present_key_values)
        growing = [x for tensor, x in declared if tensor.grows]
        if case.windows:
            windows = windows_of(model)
            growing = [last_tokens(x, window) for x, window in zip(growing, windows, strict=True)]
        results |= reported_state(growing, [x for tensor, x in declared if not tensor.grows])
    if case.gap:
        assert case.batch.mask is not None
        width = model.spec.output_width
        for name in results.keys() & {PRESENT, *token_outputs(model.head, width)}:
            results[name] = at_their_places(results[name], case.batch.mask)
    return apart | results


def coordinates_of(model: VisionLanguage, case: Case, batch: Batch) -> Tensor | None:
    """The frame, row and column of each token of a ``batch`` with a case's images; None if the decoder does not rotate by
    them."""
    images = case.encoder
    if images is None or images.grids is None or not model.rotates_by_axis:
        return None
    return model.coordinates(batch.inputs, batch.mask, images.grids)


def _with_images(model: VisionLanguage, case: Case, batch: Batch) -> tuple[dict[str, Tensor], Tensor]:
    """Return a case's image vectors and embeddings as outputs, and the embeddings of its ``batch``."""
    images = case.encoder
    assert images is not None
    seen = model.encode_images(_inputs(images, model), images.grids) if len(images.inputs) else None
    embedded = model.embed(case.batch.inputs, seen, case.batch.types)
    x = model.embed(batch.inputs, seen, batch.types) if case.gap else embedded
    return {EMBEDDED: embedded} | ({} if seen is None else {IMAGE_FEATURES: seen}), x


def _full_pair(model: DualEncoder, case: Case) -> dict[str, Tensor]:
    """The outputs of a dual encoder: each encoder's, prefixed by its name, and the joint ones."""
    texts, images = case.batch, case.encoder
    assert images is not None
    seen = _inputs(images, model)
    alone = {
        "text": model.encode("text", texts.inputs, texts.mask, texts.types),
        "image": model.encode("image", seen),
    }
    named = {f"{name} {output}": x for name, outputs in alone.items() for output, x in outputs.items()}
    return named | reported_pairs(model(texts.inputs, seen, texts.mask, texts.types))


def reported_pairs(outputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The joint outputs of both encoders by reported name; outputs per patch count as image outputs."""
    return {f"image {name}{_WITH_TEXTS}" if name in _OF_PATCHES else name: x for name, x in outputs.items()}


def _pairs_with_texts(output: str) -> bool:
    """Whether an output for images depends on every text."""
    return output == "logits_per_image" or output.endswith(_WITH_TEXTS)


def _inputs(batch: Batch, model: nn.Module) -> Tensor:
    """A batch's inputs for a model: token ids, or numbers in the model's dtype."""
    inputs = batch.inputs
    return inputs.to(next(model.parameters()).dtype) if inputs.is_floating_point() else inputs


def reported_state(growing: Sequence[Tensor], constant: Sequence[Tensor]) -> dict[str, Tensor]:
    """The reported state of all layers: the part with a token axis, B S ..., and the rest, B ..."""
    state = {PRESENT: side_by_side(growing)} if growing else {}
    return state | ({STATE: torch.cat([x.float().flatten(1) for x in constant], 1)} if constant else {})


def windows_of(model: Any) -> list[int | None]:
    """The window of each growing tensor in the state of a decoder; None for no window."""
    attentions = model.decoder.attentions
    return [
        attentions[layer].window if layer in attentions else None
        for layer, state in enumerate(model.decoder.states)
        for tensor in state
        if tensor.grows
    ]


def last_tokens(cache: Tensor, window: int | None) -> Tensor:
    """Keys or values with zeros before the last tokens, as many as a window has: B G S K -> B G S K."""
    if window is None:
        return cache
    kept = torch.arange(cache.shape[2], device=cache.device) >= cache.shape[2] - window
    return cache * kept[:, None]


def side_by_side(caches: Iterable[Tensor]) -> Tensor:
    """Concatenate caches by token: B G S K each -> B S and all numbers of a token."""
    return torch.cat([cache.transpose(1, 2).flatten(2) for cache in caches], -1)


def at_their_places(values: Tensor, mask: Tensor) -> Tensor:
    """Move the values at the front of each row to the positions where the mask is 1: B S (N) and B S -> B S (N)."""
    indices = (mask.cumsum(1) - 1).clamp(min=0)  # B S
    return values.gather(
        1, indices if values.dim() == 2 else indices[..., None].expand(-1, -1, values.shape[-1])
    )


def real_places(case: Case, output: str, per_token: frozenset[str], dtype: torch.dtype) -> Tensor:
    """The index of the values of an output to compare, B or B T; padding is excluded.

    Also excluded are rows without real tokens in half precision, whose masked scores may differ (they must only be finite),
    and rows in which a router is undecided.
    """
    of_encoder = output.startswith(OF_ENCODER) or (
        not case.reads_encoder and output.startswith(VECTORS_PER_IMAGE)
    )
    batch = case.encoder if of_encoder and case.encoder is not None else case.batch
    read = (case.encoder, case.batch) if case.reads_encoder else (batch,)
    masks = [source.real == 1 for source in read if source is not None and source.real is not None]
    rows = torch.ones(batch.rows, dtype=torch.bool)
    if case.decided is not None and (case.reads_encoder or not of_encoder):
        rows = case.decided  # of tokens
    elif case.decided is not None and _pairs_with_texts(output):
        rows &= bool(case.decided.all())
    if dtype != torch.float32:
        rows = torch.stack([rows, *(mask.any(1) for mask in masks)]).all(0)
    if batch.real is None or output not in per_token:
        return rows
    return (batch.real == 1) & rows[:, None]
